#include "server/grpc/multiplexed_calls.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "server/grpc/unary_call.h"
#include "wire/calls.h"

namespace kvstore::server {
namespace {

/// No answer is added to a message that has so much.
constexpr size_t kMessageBytes = size_t{256} << 10;
/// How long calls of a message may run on the thread that reads, because the next message waits meanwhile.
constexpr std::chrono::milliseconds kMaxInline{1};
/// Writes of a message with more cells do not run on that thread, for the same reason.
constexpr int kMaxInlineCells = 1'000;
/// Nor do those of a message with more bytes.
constexpr size_t kMaxInlineBytes = size_t{1} << 20;
/// With more of them open nothing is read: a client that does not take answers can send no more calls.
constexpr size_t kMaxOpen = 4096;
/// With more bytes of answers that the client does not take no call is run: one of a few bytes may have an
/// answer of megabytes.
constexpr size_t kMaxUnsentBytes = size_t{16} << 20;
/// How many of those that wait are resumed together when there is room again.
constexpr size_t kResumedTogether = 8;
/// The memory that the answer to a refused call takes, about: measured with protobuf 3.21 and glibc.
constexpr size_t kRefusalBytes = 320;
/// How many answers to calls that were turned away are made together.
constexpr int kTurnedAwayTogether = 64;
/// After a message with more answers its memory is given back.
constexpr int kKeptAnswers = 64;
/// A timeout from here on counts as none.
constexpr std::chrono::microseconds kMaxTimeout = std::chrono::hours(24);

}  // namespace

void MultiplexedCalls::Start() {
  if (auto status = Authenticate(); !status.ok()) {
    End(status);
    return Finish(wire::ToWire(status));
  }
  // Not earlier, because Drain of a tracked call writes.
  Track();
  // A stream that is opened after Drain has to be told, too.
  if (core_.draining.load()) Drain();
  StartRead(reading_.get());
}

void MultiplexedCalls::Drain() {
  const MutexLock lock(mutex_);
  if (std::exchange(stops_, true)) return;
  // Otherwise the stream ends anyway.
  if (open_ > 0 && !lost_) Send();
}

void MultiplexedCalls::OnReadDone(bool ok) {
  if (!ok) return FinishWork();
  const auto incoming = std::exchange(reading_, std::make_shared<Incoming<v1::CallsRequest>>());
  absl::Status status = incoming->status;
  // The stream ends when its caller is not allowed any more; else each of its messages would be read, and its
  // calls refused.
  if (status.ok()) status = CheckCaller();
  if (!status.ok()) {
    {
      const MutexLock lock(mutex_);
      end_ = status;
    }
    return FinishWork();
  }
  // The message is in memory, and counted, until the last of its calls is done, and until the answers to
  // those that are refused were sent, for which room is kept here.
  const auto calls = static_cast<size_t>(incoming->message.calls_size());
  const auto held = ReserveBytes(incoming->size.memory + calls * kRefusalBytes);
  const Message message(&incoming->message, [owner = incoming, held](const v1::CallsRequest*) {});
  {
    const MutexLock lock(mutex_);
    open_ += calls + 1;
    if (held == nullptr) {
      for (const v1::Call& call : message->calls()) turned_away_.push_back(call.number());
    }
    // The next message is asked for after the answers to this one (ReadOn): gRPC tells the client in a
    // packet of its own that it may send more, for which it would be woken another time.
    paused_ = dispatching_ = true;
  }
  Dispatching dispatching{.message = message, .came = Clock::now()};
  for (const v1::Call& call : message->calls()) {
    if (held != nullptr) {
      Dispatch(call, dispatching);
    } else {
      core_.admission.CountRefused();
    }
  }
  StartWrites(dispatching);
  {
    const MutexLock lock(mutex_);
    ++taken_;
    dispatching_ = false;
  }
  FinishWork();
}

void MultiplexedCalls::Dispatch(const v1::Call& call, Dispatching& dispatching) {
  switch (call.call_case()) {
#define KV_MULTIPLEXED(name, right, quick, field) \
  case v1::Call::k##name:                         \
    return Dispatch(Operation::k##name, call, call.field(), dispatching);
#include "backend_api/operations.def"
    case v1::Call::CALL_NOT_SET:
      break;
  }
  // A newer client knows more calls. It makes this one by its own method after this error.
  Refuse(dispatching.message, call,
         absl::UnimplementedError("call: is missing, or one that this server does not take over a stream"));
}

void MultiplexedCalls::Refuse(const Message& message, const v1::Call& call, const absl::Status& status) {
  auto answer = std::make_unique<v1::Answer>();
  answer->set_number(call.number());
  Answer(Open{.answer = std::move(answer), .call = nullptr, .message = message}, status);
}

template <typename Request>
void MultiplexedCalls::Dispatch(Operation operation, const v1::Call& call, const Request& request,
                                Dispatching& dispatching) {
  auto answer = std::make_unique<v1::Answer>();
  answer->set_number(call.number());
  auto& response = wire::CallKind<Request>::In(*answer);
  using UnaryOf = UnaryCall<Request, std::remove_reference_t<decltype(response)>>;
  CallInfo info{.transport = info_.transport,
                .door = info_.door,
                .cancelled = &cancelled(),
                .wants_migration_errors = call.tell_moving(),
                .is_part_of_stream = true};
  if (call.timeout_us() > 0 && call.timeout_us() < static_cast<uint64_t>(kMaxTimeout.count())) {
    info.deadline = dispatching.came + std::chrono::microseconds(call.timeout_us());
  }
  auto unary = std::make_unique<UnaryOf>(core_, operation, info, request, response);
  // The message itself is counted by OnReadDone; here counts what is built for one of its calls.
  const size_t bytes = request.ByteSizeLong();
  const absl::Status admitted = unary->Admit({.bytes = bytes, .memory = bytes + sizeof(UnaryOf)});
  const bool here = unary->RunsInline() && Clock::now() < dispatching.came + kMaxInline;
  PutCall* put = nullptr;
  if constexpr (std::is_same_v<UnaryOf, PutCall>) {
    // Each put with a condition is a write of its own: those of several workers share a flush of the
    // engine's.
    if (!request.has_condition()) put = unary.get();
  }
  const bool in_turn = unary->RunsInTurn();
  const bool flushes = unary->WaitsForDevice();
  if (!admitted.ok()) {
    unary->End(admitted);
    return Answer(Open{.answer = std::move(answer), .call = nullptr, .message = dispatching.message},
                  admitted);
  }
  Open open{
      .answer = std::move(answer),
      .call = std::move(unary),
      .execute = [](Call& its,
                    absl::Status& status) { return static_cast<UnaryOf&>(its).Execute(status).has_value(); },
      .put = put};
  if (here && IsFull()) {
    std::vector<Open> alone;
    alone.push_back(std::move(open));
    QueueForRoom(dispatching.message, std::move(alone));
  } else if (here && Execute(open)) {
    // Execute has answered it.
  } else if (here) {
    std::vector<Open> alone;
    alone.push_back(std::move(open));
    Suspend(dispatching.message, std::move(alone));
  } else if (in_turn) {
    AddWrite(std::move(open), dispatching);
  } else if (flushes && put != nullptr) {
    dispatching.flushed.push_back(std::move(open));
  } else {
    std::vector<Open> alone;
    alone.push_back(std::move(open));
    HandOver(dispatching.message, std::move(alone));
  }
}

void MultiplexedCalls::AddWrite(Open open, Dispatching& dispatching) {
  if (open.put == nullptr || !open.put->RunsInTurnHere()) {
    dispatching.writes_run_here = false;
  } else {
    dispatching.cells += open.put->request().cells_size();
  }
  dispatching.writes.push_back(std::move(open));
}

void MultiplexedCalls::StartWrites(Dispatching& dispatching) {
  const Message& message = dispatching.message;
  if (!dispatching.flushed.empty()) HandOver(message, std::move(dispatching.flushed));
  if (dispatching.writes.empty()) return;
  const bool here = dispatching.writes_run_here && dispatching.cells <= kMaxInlineCells &&
                    message->ByteSizeLong() <= kMaxInlineBytes &&
                    Clock::now() < dispatching.came + kMaxInline && !IsFull();
  if (!here) return HandOver(message, std::move(dispatching.writes));
  PutAll(message, std::move(dispatching.writes), Patience::kPrompt);
}

void MultiplexedCalls::PutAll(const Message& message, std::vector<Open> puts, Patience patience) {
  std::vector<Open> waiting;
  while (!puts.empty()) {
    const std::string_view dataset = puts.front().call->dataset();
    const auto end = std::stable_partition(puts.begin(), puts.end(),
                                           [&](const Open& open) { return open.call->dataset() == dataset; });
    std::vector<PutOfMany> group;
    group.reserve(puts.size());
    std::transform(puts.begin(), end, std::back_inserter(group),
                   [](const Open& open) { return PutOfMany{.call = open.put}; });
    CarryOutTogether(core_, group, patience);
    std::vector<Open> held;
    for (size_t i = 0; i < group.size(); ++i) {
      switch (group[i].end) {
        case PutOfMany::End::kDone:
          Answer(std::move(puts[i]), group[i].status);
          break;
        case PutOfMany::End::kSuspended:
          held.push_back(std::move(puts[i]));
          break;
        case PutOfMany::End::kWouldWait:
          waiting.push_back(std::move(puts[i]));
          break;
      }
    }
    if (!held.empty()) Suspend(message, std::move(held));
    puts.erase(puts.begin(), end);
  }
  if (!waiting.empty()) HandOver(message, std::move(waiting));
}

bool MultiplexedCalls::Execute(Open& open) {
  absl::Status status;
  if (!open.execute(*open.call, status)) return false;
  Answer(std::move(open), status);
  return true;
}

void MultiplexedCalls::ExecuteAll(const Message& message, std::vector<Open> calls) {
  const bool puts_only =
      std::all_of(calls.begin(), calls.end(), [](const Open& open) { return open.put != nullptr; });
  if (puts_only && !IsFull()) return PutAll(message, std::move(calls), Patience::kWaits);
  std::vector<std::vector<Open>> held;  // by dataset
  std::vector<Open> later;
  for (Open& open : calls) {
    const auto behind = std::find_if(held.begin(), held.end(), [&](const std::vector<Open>& others) {
      return others.front().call->dataset() == open.call->dataset();
    });
    if (behind != held.end()) {
      open.call->SuspendBehind();
      behind->push_back(std::move(open));
    } else if (!later.empty() || IsFull()) {
      later.push_back(std::move(open));
    } else if (!Execute(open)) {
      held.emplace_back().push_back(std::move(open));
    }
  }
  for (std::vector<Open>& others : held) Suspend(message, std::move(others));
  if (!later.empty()) QueueForRoom(message, std::move(later));
}

bool MultiplexedCalls::IsFull() const {
  return unsent_bytes_.load(std::memory_order_relaxed) > kMaxUnsentBytes;
}

void MultiplexedCalls::QueueForRoom(const Message& message, std::vector<Open> calls) {
  const MutexLock lock(mutex_);
  waiting_.push_back({message, std::move(calls)});
}

void MultiplexedCalls::ResumeWaiting(size_t most) {
  // When the client is gone all of them end at once, and have no answers that take room.
  for (; most > 0 && !waiting_.empty() && (lost_ || !IsFull()); --most) {
    ++open_;
    Waiting waiting = std::move(waiting_.front());
    waiting_.pop_front();
    PostAll(waiting.message, std::move(waiting.calls));
  }
}

void MultiplexedCalls::Suspend(const Message& message, std::vector<Open> calls) {
  // std::function wants it copyable.
  const auto held = std::make_shared<std::vector<Open>>(std::move(calls));
  core_.suspended.Add({.due =
                           [held](Clock::time_point now) {
                             return std::any_of(held->begin(), held->end(),
                                                [&](const Open& open) { return open.call->IsDue(now); });
                           },
                       .retry = [this, message, held] { Retry(message, std::move(*held)); },
                       .lane = held->front().call->WorkerLane()});
}

void MultiplexedCalls::Retry(const Message& message, std::vector<Open> calls) {
  {
    const MutexLock lock(mutex_);
    ++open_;
  }
  const auto now = Clock::now();
  std::vector<Open> held;
  std::vector<Open> later;
  for (Open& open : calls) {
    // Behind a call that stays suspended only those run that are due: they end without being carried out.
    if (!later.empty() || (held.empty() && IsFull())) {
      later.push_back(std::move(open));
    } else if (!held.empty() && !open.call->IsDue(now)) {
      held.push_back(std::move(open));
    } else if (!Execute(open)) {
      held.push_back(std::move(open));
    }
  }
  if (!held.empty()) Suspend(message, std::move(held));
  if (!later.empty()) QueueForRoom(message, std::move(later));
  FinishWork();
}

void MultiplexedCalls::SetError(v1::Answer& answer, const absl::Status& status) {
  wire::ToWire(status, *answer.mutable_error());
  answer.set_outcome(WireName(OutcomeOf(status)));
}

void MultiplexedCalls::Answer(Open&& open, const absl::Status& status) {
  if (!status.ok()) SetError(*open.answer, status);
  open.bytes = open.answer->ByteSizeLong();
  const MutexLock lock(mutex_);
  unsent_bytes_ += open.bytes;
  ready_.push_back(std::move(open));
}

void MultiplexedCalls::HandOver(const Message& message, std::vector<Open> calls) {
  {
    const MutexLock lock(mutex_);
    ++open_;
  }
  PostAll(message, std::move(calls));
}

void MultiplexedCalls::PostAll(const Message& message, std::vector<Open> calls) {
  // The stream's own caller may be authenticated again meanwhile; that of the calls stays, and so does its
  // queue. The message owns the requests.
  Call& first = *calls.front().call;
  first.Post([this, message, calls = std::move(calls)]() mutable {
    ExecuteAll(message, std::move(calls));
    FinishWork();
  });
}

void MultiplexedCalls::FinishWork() {
  bool done = false;
  {
    const MutexLock lock(mutex_);
    // One begins where this one ends: as many threads are at work as before.
    ResumeWaiting(1);
    --open_;
    done = Send();
    if (!done) ReadOn();
  }
  if (done) Close();
}

bool MultiplexedCalls::Send() {
  if (writing_) return false;
  if (lost_) {
    open_ -= ready_.size() + turned_away_.size();
    ready_.clear();
    turned_away_.clear();
    unsent_bytes_ = sending_bytes_;
  } else if (!ready_.empty() || !turned_away_.empty() || reported_taken_ != taken_ ||
             reported_stops_ != stops_) {
    sent_.Clear();
    sent_.set_taken(reported_taken_ = taken_);
    sent_.set_stops(reported_stops_ = stops_);
    size_t bytes = 0;
    for (; !ready_.empty() && bytes < kMessageBytes; ready_.pop_front()) {
      Open& open = ready_.front();
      bytes += open.bytes;
      sent_.mutable_answers()->AddAllocated(open.answer.release());
      sending_.push_back(std::move(open));
      --open_;
    }
    for (int i = 0; i < kTurnedAwayTogether && !turned_away_.empty(); ++i, turned_away_.pop_front()) {
      v1::Answer& answer = *sent_.add_answers();
      answer.set_number(turned_away_.front());
      SetError(answer, MarkRefused(TooManyInFlightError()));
      bytes += answer.ByteSizeLong();
      unsent_bytes_ += answer.ByteSizeLong();
      --open_;
    }
    sending_bytes_ = bytes;
    writing_ = true;
    MarkWaitingForClient();
    StartWrite(&sent_);
  }
  return !writing_ && open_ == 0;
}

void MultiplexedCalls::ReadOn() {
  if (!paused_ || dispatching_ || open_ > kMaxOpen || !turned_away_.empty()) return;
  paused_ = false;
  // The next message may come on another thread from here on.
  StartRead(reading_.get());
}

void MultiplexedCalls::OnWriteDone(bool ok) {
  std::vector<Open> sent;
  {
    const MutexLock lock(mutex_);
    sent.swap(sending_);
  }
  // They count in this object, which may be gone later on.
  sent.clear();
  bool done = false;
  {
    const MutexLock lock(mutex_);
    MarkClientResponded();
    writing_ = false;
    lost_ = lost_ || !ok;
    // Clear() would keep the memory of its answers.
    if (sending_bytes_ > kMessageBytes || sent_.answers_size() > kKeptAnswers) sent_ = v1::CallsResponse();
    unsent_bytes_ -= std::exchange(sending_bytes_, 0);
    ResumeWaiting(kResumedTogether);
    done = Send();
    if (!done) ReadOn();
  }
  if (done) Close();
}

void MultiplexedCalls::Close() {
  MarkWaitingForClient();
  Finish(wire::ToWire(end_));
}

}  // namespace kvstore::server
