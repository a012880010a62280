#include "server/calls_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/unary_call.h"
#include "wire/calls.h"

namespace kvstore::server {
namespace {

/// A message of answers is closed when it has so much.
constexpr size_t kMessageBytes = size_t{256} << 10;
/// How long calls of a message are made on the thread that reads: the next message waits meanwhile.
constexpr std::chrono::milliseconds kMaxInline{1};
/// With more open, nothing is read: who does not take answers brings no more calls.
constexpr size_t kMaxOpen = 4096;
/// With more of answers that the client does not take, none are made: a call of a few bytes may give
/// megabytes.
constexpr size_t kMaxHeldBytes = size_t{16} << 20;
/// So many of those that wait are begun together when there is room again.
constexpr size_t kGoOnTogether = 8;
/// From here on a time is none.
constexpr std::chrono::microseconds kMaxTimeout = std::chrono::hours(24);

}  // namespace

void CallsStream::Start() {
  if (auto status = Greet(); !status.ok()) {
    End(status);
    return Finish(wire::ToWire(status));
  }
  // Not before: Drain writes.
  Track();
  // Who comes behind Drain has to be told, too.
  if (core_.draining.load()) Drain();
  StartRead(reading_.get());
}

void CallsStream::Drain() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(stops_, true)) return;
  // Else it ends as it is.
  if (open_ > 0 && !lost_) Send();
}

void CallsStream::OnReadDone(bool ok) {
  if (!ok) return Leave();
  const auto incoming = std::exchange(reading_, std::make_shared<Incoming<v1::CallsRequest>>());
  absl::Status status = incoming->status;
  // The stream of who may not call any more ends: each of its messages would be read, and refused.
  if (status.ok()) status = CheckCaller();
  if (status.ok() && incoming->message.calls_size() > wire::kMaxCallsOfMessage) {
    status =
        absl::InvalidArgumentError(fmt::format("calls: {} in a message, which may have {}",
                                               incoming->message.calls_size(), wire::kMaxCallsOfMessage));
  }
  if (!status.ok()) {
    {
      const std::lock_guard lock(mutex_);
      end_ = status;
    }
    return Leave();
  }
  // The message is in memory until the last of its calls is made, also of those that are refused.
  const auto held = HoldBytes(incoming->memory);
  const Message message(&incoming->message, [owner = incoming, held](const v1::CallsRequest*) {});
  {
    const std::lock_guard lock(mutex_);
    open_ += static_cast<size_t>(message->calls_size()) + 1;
    paused_ = open_ > kMaxOpen;
    // The next message comes on another thread.
    if (!paused_) StartRead(reading_.get());
  }
  Taking taking{.message = message, .came = Clock::now()};
  for (const v1::Call& call : message->calls()) {
    if (held != nullptr) {
      Take(call, taking);
    } else {
      core_.admission.CountRefused();
      Refuse(call, Refused(NoRoom()));
    }
  }
  if (!taking.writes.empty()) HandOver(message, std::move(taking.writes));
  {
    const std::lock_guard lock(mutex_);
    ++taken_;
  }
  Leave();
}

void CallsStream::Take(const v1::Call& call, Taking& taking) {
  switch (call.call_case()) {
    case v1::Call::kGetRow:
      return Take(Operation::kGetRow, call, call.get_row(), taking);
    case v1::Call::kPutRow:
      return Take(Operation::kPutRow, call, call.put_row(), taking);
    case v1::Call::kDeleteRow:
      return Take(Operation::kDeleteRow, call, call.delete_row(), taking);
    case v1::Call::kCreateObject:
      return Take(Operation::kCreateObject, call, call.create_object(), taking);
    case v1::Call::kGetObject:
      return Take(Operation::kGetObject, call, call.get_object(), taking);
    case v1::Call::kUpdateObject:
      return Take(Operation::kUpdateObject, call, call.update_object(), taking);
    case v1::Call::kDeleteObject:
      return Take(Operation::kDeleteObject, call, call.delete_object(), taking);
    case v1::Call::kAddMapping:
      return Take(Operation::kAddMapping, call, call.add_mapping(), taking);
    case v1::Call::kRemoveMapping:
      return Take(Operation::kRemoveMapping, call, call.remove_mapping(), taking);
    case v1::Call::kListMapping:
      return Take(Operation::kListMapping, call, call.list_mapping(), taking);
    case v1::Call::kCountMapping:
      return Take(Operation::kCountMapping, call, call.count_mapping(), taking);
    case v1::Call::CALL_NOT_SET:
      break;
  }
  // Of a newer client, which makes it by its own method then.
  Refuse(call, absl::UnimplementedError("call: none that this server takes over a stream"));
}

void CallsStream::Refuse(const v1::Call& call, const absl::Status& status) {
  auto answer = std::make_unique<v1::Answer>();
  answer->set_number(call.number());
  Answer(Open{.answer = std::move(answer), .call = nullptr}, status);
}

template <typename Request>
void CallsStream::Take(Operation operation, const v1::Call& call, const Request& request, Taking& taking) {
  auto answer = std::make_unique<v1::Answer>();
  answer->set_number(call.number());
  auto& response = wire::CallKind<Request>::In(*answer);
  using Made = UnaryCall<Request, std::remove_reference_t<decltype(response)>>;
  Part part{.deadline = std::nullopt, .cancelled = &cancelled(), .tells_moving = call.tell_moving()};
  if (call.timeout_us() > 0 && call.timeout_us() < static_cast<uint64_t>(kMaxTimeout.count())) {
    part.deadline = taking.came + std::chrono::microseconds(call.timeout_us());
  }
  auto made = std::make_unique<Made>(core_, operation, context_, request, response, part);
  const absl::Status entered = made->Enter(request.ByteSizeLong());
  const bool here = made->RunsHere() && Clock::now() < taking.came + kMaxInline;
  const bool together = made->RunsInTurn();
  if (!entered.ok()) {
    made->End(entered);
    return Answer(Open{.answer = std::move(answer), .call = nullptr}, entered);
  }
  Open open{
      .answer = std::move(answer), .call = std::move(made), .make = [](Call& its, absl::Status& status) {
        return static_cast<Made&>(its).Make(status).has_value();
      }};
  if (here && IsFull()) {
    std::vector<Open> alone;
    alone.push_back(std::move(open));
    Wait(taking.message, std::move(alone));
  } else if (here && Make(open)) {
    // It is answered.
  } else if (here) {
    std::vector<Open> alone;
    alone.push_back(std::move(open));
    Hold(taking.message, std::move(alone));
  } else if (together) {
    taking.writes.push_back(std::move(open));
  } else {
    std::vector<Open> alone;
    alone.push_back(std::move(open));
    HandOver(taking.message, std::move(alone));
  }
}

bool CallsStream::Make(Open& open) {
  absl::Status status;
  if (!open.make(*open.call, status)) return false;
  Answer(std::move(open), status);
  return true;
}

void CallsStream::MakeAll(const Message& message, std::vector<Open> calls) {
  std::vector<std::vector<Open>> held;  // by dataset
  std::vector<Open> later;
  for (Open& open : calls) {
    const auto behind = std::find_if(held.begin(), held.end(), [&](const std::vector<Open>& others) {
      return others.front().call->dataset() == open.call->dataset();
    });
    if (behind != held.end()) {
      open.call->HoldBehind();
      behind->push_back(std::move(open));
    } else if (!later.empty() || IsFull()) {
      later.push_back(std::move(open));
    } else if (!Make(open)) {
      held.emplace_back().push_back(std::move(open));
    }
  }
  for (std::vector<Open>& others : held) Hold(message, std::move(others));
  if (!later.empty()) Wait(message, std::move(later));
}

bool CallsStream::IsFull() const { return held_bytes_.load(std::memory_order_relaxed) > kMaxHeldBytes; }

void CallsStream::Wait(const Message& message, std::vector<Open> calls) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({message, std::move(calls)});
}

void CallsStream::GoOnWithWaiting(size_t most) {
  // Of a client that is gone all of them end, and hold nothing.
  for (; most > 0 && !waiting_.empty() && (lost_ || !IsFull()); --most) {
    ++open_;
    // The message has the requests.
    core_.workers.Post([this, waiting = std::make_shared<Waiting>(std::move(waiting_.front()))] {
      MakeAll(waiting->message, std::move(waiting->calls));
      Leave();
    });
    waiting_.pop_front();
  }
}

void CallsStream::Hold(const Message& message, std::vector<Open> calls) {
  // What is held has to be copyable.
  const auto held = std::make_shared<std::vector<Open>>(std::move(calls));
  core_.held.Add({.due =
                      [held](Clock::time_point now) {
                        return std::any_of(held->begin(), held->end(),
                                           [&](const Open& open) { return open.call->IsDue(now); });
                      },
                  .again = [this, message, held] { MakeAgain(message, std::move(*held)); }});
}

void CallsStream::MakeAgain(const Message& message, std::vector<Open> calls) {
  {
    const std::lock_guard lock(mutex_);
    ++open_;
  }
  const auto now = Clock::now();
  std::vector<Open> held;
  std::vector<Open> later;
  for (Open& open : calls) {
    // Behind one that is still held only those are made that end without being carried out.
    if (!later.empty() || (held.empty() && IsFull())) {
      later.push_back(std::move(open));
    } else if (!held.empty() && !open.call->IsDue(now)) {
      held.push_back(std::move(open));
    } else if (!Make(open)) {
      held.push_back(std::move(open));
    }
  }
  if (!held.empty()) Hold(message, std::move(held));
  if (!later.empty()) Wait(message, std::move(later));
  Leave();
}

void CallsStream::Answer(Open&& open, const absl::Status& status) {
  if (!status.ok()) {
    wire::ToWire(status, *open.answer->mutable_error());
    open.answer->set_outcome(OutcomeOf(status));
  }
  open.bytes = open.answer->ByteSizeLong();
  const std::lock_guard lock(mutex_);
  held_bytes_ += open.bytes;
  ready_.push_back(std::move(open));
}

void CallsStream::HandOver(const Message& message, std::vector<Open> calls) {
  {
    const std::lock_guard lock(mutex_);
    ++open_;
  }
  // The message has the requests.
  core_.workers.Post([this, message, calls = std::move(calls)]() mutable {
    MakeAll(message, std::move(calls));
    Leave();
  });
}

void CallsStream::Leave() {
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    // One for this one: as many threads are at work as before.
    GoOnWithWaiting(1);
    --open_;
    done = Send();
  }
  if (done) Close();
}

bool CallsStream::Send() {
  if (writing_) return false;
  if (lost_) {
    open_ -= ready_.size();
    ready_.clear();
    held_bytes_ = sending_bytes_;
  } else if (!ready_.empty() || told_taken_ != taken_ || told_stops_ != stops_) {
    sent_.Clear();
    sent_.set_taken(told_taken_ = taken_);
    sent_.set_stops(told_stops_ = stops_);
    size_t bytes = 0;
    for (; !ready_.empty() && bytes < kMessageBytes; ready_.pop_front()) {
      Open& open = ready_.front();
      bytes += open.bytes;
      sent_.mutable_answers()->AddAllocated(open.answer.release());
      sending_.push_back(std::move(open.call));
      --open_;
    }
    sending_bytes_ = bytes;
    writing_ = true;
    WaitForClient();
    StartWrite(&sent_);
  }
  if (paused_ && open_ <= kMaxOpen) {
    paused_ = false;
    StartRead(reading_.get());
  }
  return !writing_ && open_ == 0;
}

void CallsStream::OnWriteDone(bool ok) {
  std::vector<std::unique_ptr<Call>> sent;
  {
    const std::lock_guard lock(mutex_);
    sent.swap(sending_);
  }
  // Before this may be gone, and what they count in.
  sent.clear();
  bool done = false;
  {
    const std::lock_guard lock(mutex_);
    GoOn();
    writing_ = false;
    lost_ = lost_ || !ok;
    // Cleared it would keep the memory of its answers.
    if (sending_bytes_ > kMessageBytes) sent_ = v1::CallsResponse();
    held_bytes_ -= std::exchange(sending_bytes_, 0);
    GoOnWithWaiting(kGoOnTogether);
    done = Send();
  }
  if (done) Close();
}

void CallsStream::Close() {
  WaitForClient();
  Finish(wire::ToWire(end_));
}

}  // namespace kvstore::server
