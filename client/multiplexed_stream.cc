#include "client/call_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client/caller.h"
#include "wire/calls.h"
#include "wire/convert.h"

namespace kvstore::client {
namespace {

/// A message of calls is closed when it has so much.
constexpr size_t kMessageBytes = size_t{1} << 20;

/// What can happen on a stream, each at most once at a time.
enum Event : uint8_t { kOpened, kRead, kWritten, kHalfClosed, kFinished };
/// gRPC gives back an address.
std::array<Event, 5> events = {kOpened, kRead, kWritten, kHalfClosed, kFinished};
void* Tag(Event event) { return &events.at(event); }

}  // namespace

CallStream::CallStream(v1::KVStore::StubInterface& stub, const Metadata& metadata) {
  for (const auto& [key, value] : metadata) context_.AddMetadata(key, value);
  stream_ = stub.PrepareAsyncCalls(&context_, &queue_);
  stream_->StartCall(Tag(kOpened));
  thread_ = std::thread([this] { Run(); });
}

CallStream::~CallStream() {
  context_.TryCancel();
  thread_.join();
}

bool CallStream::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

grpc::Status CallStream::Make(v1::Call call, Clock::time_point deadline, v1::Answer& answer) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now());
  call.set_timeout_us(static_cast<uint64_t>(std::max<int64_t>(1, left.count())));
  const auto waiting = std::make_shared<Waiting>();
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      answer.set_outcome(wire::kRefused);
      return {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
    }
    number = ++last_;
    call.set_number(number);
    waiting_.emplace(number, waiting);
    next_.push_back(std::move(call));
    Send();
  }
  std::unique_lock waits(waiting->mutex);
  if (!waiting->wakes.wait_until(waits, deadline, [&] { return waiting->done; })) {
    waits.unlock();
    std::unique_lock lock(mutex_);
    if (waiting_.erase(number) == 1) {
      const size_t unsent = std::erase_if(next_, [&](const v1::Call& one) { return one.number() == number; });
      if (unsent == 0) return {grpc::StatusCode::DEADLINE_EXCEEDED, "no answer in time"};
      answer.set_outcome(wire::kFailed);
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "the call could not be sent in time"};
    }
    lock.unlock();
    // It is done after all.
    waits.lock();
    waiting->wakes.wait(waits, [&] { return waiting->done; });
  }
  answer.Swap(&waiting->answer);
  return waiting->status;
}

void CallStream::Run() {
  grpc::Status end;
  bool ended = false;
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) {
    switch (*static_cast<const Event*>(tag)) {
      case kOpened:
      case kWritten: {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        if (ok && !ended) stops_ ? EndWriting() : Send();
        if (tag == Tag(kOpened)) stream_->Read(&received_, Tag(kRead));
        break;
      }
      case kRead:
        if (ok) {
          OnRead();
          stream_->Read(&received_, Tag(kRead));
        } else {
          const std::lock_guard lock(mutex_);
          closed_ = ended = true;
          stream_->Finish(&end, Tag(kFinished));
        }
        break;
      case kHalfClosed:
        break;
      case kFinished:
        End(end);
        queue_.Shutdown();
        break;
    }
  }
}

void CallStream::OnRead() {
  List answered;
  {
    const std::lock_guard lock(mutex_);
    taken_ = received_.taken();
    for (v1::Answer& answer : *received_.mutable_answers()) {
      // An answer to a call that was not sent yet is none; the call waits in next_.
      if (answer.number() > last_sent_) continue;
      const auto found = waiting_.find(answer.number());
      if (found == waiting_.end()) continue;  // whose time was over
      Waiting& waiting = *found->second;
      if (answer.has_error()) {
        const v1::Error& error = answer.error();
        waiting.status = grpc::Status(static_cast<grpc::StatusCode>(error.code()), error.message());
      }
      waiting.answer.Swap(&answer);
      answered.push_back(std::move(found->second));
      waiting_.erase(found);
    }
    if (received_.stops() && !std::exchange(stops_, true)) {
      closed_ = true;
      Refuse({grpc::StatusCode::UNAVAILABLE, "the server stops"}, answered);
      if (!writing_) EndWriting();
    } else {
      Send();
    }
  }
  Wake(answered);
}

void CallStream::Send() {
  if (writing_ || messages_ != taken_ || next_.empty() || closed_) return;
  sent_.Clear();
  for (size_t bytes = 0; !next_.empty() && bytes < kMessageBytes; next_.pop_front()) {
    if (sent_.calls_size() == wire::kMaxCallsOfMessage) break;
    bytes += next_.front().ByteSizeLong();
    last_sent_ = next_.front().number();
    sent_.add_calls()->Swap(&next_.front());
  }
  writing_ = true;
  ++messages_;
  stream_->Write(sent_, Tag(kWritten));
}

void CallStream::EndWriting() {
  writing_ = true;  // nothing more
  stream_->WritesDone(Tag(kHalfClosed));
}

void CallStream::Refuse(const grpc::Status& status, List& refused) {
  for (const v1::Call& call : next_) {
    const auto found = waiting_.find(call.number());
    found->second->status = status;
    found->second->answer.set_outcome(wire::kRefused);
    refused.push_back(std::move(found->second));
    waiting_.erase(found);
  }
  next_.clear();
}

void CallStream::End(const grpc::Status& status) {
  const grpc::Status end =
      status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server ended the stream") : status;
  List lost;
  {
    const std::lock_guard lock(mutex_);
    Refuse(end, lost);
    for (auto& [number, waiting] : waiting_) {
      waiting->status = end;
      lost.push_back(std::move(waiting));
    }
    waiting_.clear();
    // Of a stream that the server did not take at all, all calls share its outcome.
    if (const std::string outcome = OutcomeOf(context_); !outcome.empty()) {
      for (const auto& waiting : lost) waiting->answer.set_outcome(outcome);
    }
  }
  Wake(lost);
}

void CallStream::Wake(const List& done) {
  for (const auto& waiting : done) {
    {
      const std::lock_guard lock(waiting->mutex);
      waiting->done = true;
    }
    waiting->wakes.notify_one();
  }
}

}  // namespace kvstore::client
