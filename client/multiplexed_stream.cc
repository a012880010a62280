#include "client/multiplexed_stream.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "client/outcome.h"
#include "kvstore_api/call_scope.h"
#include "wire/calls.h"
#include "wire/convert.h"

namespace kvstore::client {
namespace {

/// No call is added to a message that has so many bytes.
constexpr size_t kCallsBytes = size_t{1} << 20;

/// How often a thread that waits for an answer looks whether its caller has cancelled.
constexpr std::chrono::milliseconds kCheckCancelled{20};

/// The events of a stream. Each is pending at most once at a time.
enum Event : uint8_t { kOpened, kRead, kWritten, kHalfClosed, kFinished };
/// The tags of the events: gRPC returns a pointer with each.
std::array<Event, 5> events = {kOpened, kRead, kWritten, kHalfClosed, kFinished};
void* Tag(Event event) { return &events.at(event); }

/// Returns a call as a field of a CallsRequest: such fields one after the other are the message.
std::string AsField(const v1::Call& call) {
  using google::protobuf::io::CodedOutputStream;
  constexpr uint32_t kLengthDelimited = 2;  // protobuf's type of messages
  constexpr uint32_t kTag = (v1::CallsRequest::kCallsFieldNumber << 3) | kLengthDelimited;
  const size_t bytes = call.ByteSizeLong();
  const auto size = static_cast<uint32_t>(bytes);
  std::string field(CodedOutputStream::VarintSize32(kTag) + CodedOutputStream::VarintSize32(size) + bytes,
                    '\0');
  auto* at = reinterpret_cast<uint8_t*>(field.data());
  at = CodedOutputStream::WriteVarint32ToArray(kTag, at);
  at = CodedOutputStream::WriteVarint32ToArray(size, at);
  call.SerializeWithCachedSizesToArray(at);
  return field;
}

}  // namespace

MultiplexedStream::MultiplexedStream(grpc::ChannelInterface& channel, const Metadata& metadata) {
  for (const auto& [key, value] : metadata) context_.AddMetadata(key, value);
  const grpc::internal::RpcMethod method("/kvstore.v1.KVStore/Calls",
                                         grpc::internal::RpcMethod::BIDI_STREAMING);
  using Factory = grpc::internal::ClientAsyncReaderWriterFactory<grpc::ByteBuffer, v1::CallsResponse>;
  stream_.reset(Factory::Create(&channel, &queue_, method, &context_, /*start=*/false, /*tag=*/nullptr));
  stream_->StartCall(Tag(kOpened));
  thread_ = std::thread([this] { Run(); });
}

MultiplexedStream::~MultiplexedStream() {
  context_.TryCancel();
  thread_.join();
}

bool MultiplexedStream::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

grpc::Status MultiplexedStream::Execute(v1::Call& call, Clock::time_point deadline, v1::Answer& answer) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now());
  call.set_timeout_us(static_cast<uint64_t>(std::max<int64_t>(1, left.count())));
  const auto waiting = std::make_shared<Waiting>();
  const uint64_t number = last_.fetch_add(1, std::memory_order_relaxed) + 1;
  call.set_number(number);
  waiting->number = number;
  waiting->field = AsField(call);
  {
    MutexLock lock(mutex_);
    if (closed_) {
      answer.set_outcome(wire::kRefused);
      return {grpc::StatusCode::UNAVAILABLE, "the connection broke"};
    }
    waiting_.emplace(number, waiting);
    next_.push_back(waiting.get());
    Send(lock);
  }
  Waiting& result = *waiting;
  const std::atomic<bool>* const cancelled = CallScope::Current().cancelled;
  const auto cut = [&] { return Clock::now() >= deadline || (cancelled != nullptr && *cancelled); };
  while (!result.done.WaitUntil(cancelled == nullptr ? deadline
                                                     : std::min(deadline, Clock::now() + kCheckCancelled))) {
    if (cut()) break;
  }
  if (!result.done.has_happened()) {
    MutexLock lock(mutex_);
    if (waiting_.erase(number) == 1) {
      const size_t unsent = std::erase(next_, waiting.get());
      const bool late = Clock::now() >= deadline;
      const auto code = late ? grpc::StatusCode::DEADLINE_EXCEEDED : grpc::StatusCode::CANCELLED;
      if (unsent == 0) return {code, late ? "no answer in time" : "the caller did not wait for the answer"};
      answer.set_outcome(wire::kFailed);
      return {code,
              late ? "the call could not be sent in time" : "the call was cancelled before it was sent"};
    }
    lock.Unlock();
    // Another thread has taken the call out of waiting_ meanwhile, and will set its result at once.
    result.done.Wait();
  }
  answer.Swap(&result.answer);
  return result.status;
}

void MultiplexedStream::Run() {
  grpc::Status end;
  bool ended = false;
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) {
    switch (*static_cast<const Event*>(tag)) {
      case kOpened:
      case kWritten: {
        // Here, because Send releases the lock.
        if (tag == Tag(kOpened)) stream_->Read(&received_, Tag(kRead));
        MutexLock lock(mutex_);
        writing_ = false;
        if (!ok || ended) break;
        if (stops_) {
          EndWriting(lock);
        } else {
          Send(lock);
        }
        break;
      }
      case kRead:
        if (ok) {
          OnRead();
        } else {
          MutexLock lock(mutex_);
          closed_ = ended = true;
          // gRPC allows no Write beside it, and none after it.
          WaitForWriter(lock);
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

void MultiplexedStream::OnRead() {
  List answered;
  bool sent = false;
  {
    MutexLock lock(mutex_);
    taken_ = received_.taken();
    for (v1::Answer& answer : *received_.mutable_answers()) {
      const auto found = waiting_.find(answer.number());
      if (found == waiting_.end()) continue;  // its deadline has passed
      Waiting& waiting = *found->second;
      // A server must not answer a call that was not sent yet, and waits in next_.
      if (!waiting.sent) continue;
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
      if (!writing_) EndWriting(lock);
    } else {
      sent = Send(lock);
    }
  }
  // gRPC tells the server in a packet of its own that it may send more. After a message the server has both
  // at once; else after the next one, which those that are woken may send at once, too.
  if (sent) stream_->Read(&received_, Tag(kRead));
  Wake(answered);
  if (!sent) stream_->Read(&received_, Tag(kRead));
}

// The analysis does not know that the lock that it is given is the one of mutex_.
bool MultiplexedStream::Send(MutexLock& lock) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  bool sent = false;
  // The end of a write may be told before the call of gRPC has returned.
  while (!writing_ && !is_in_write_ && messages_ == taken_ && !next_.empty() && !closed_) {
    writing_ = is_in_write_ = true;
    ++messages_;
    const grpc::ByteBuffer message = TakeMessage();
    lock.Unlock();
    stream_->Write(message, Tag(kWritten));
    lock.Lock();
    is_in_write_ = false;
    if (closed_) written_.notify_all();
    sent = true;
  }
  return sent;
}

grpc::ByteBuffer MultiplexedStream::TakeMessage() {
  std::string message;
  for (int calls = 0; !next_.empty() && message.size() < kCallsBytes && calls < wire::kMaxCallsOfMessage;
       ++calls) {
    Waiting& call = *next_.front();
    message += call.field;
    call.sent = true;
    next_.pop_front();
  }
  const grpc::Slice slice(message);
  return {&slice, 1};
}

void MultiplexedStream::WaitForWriter(MutexLock& lock) {
  while (is_in_write_) lock.Wait(written_);
}

void MultiplexedStream::EndWriting(MutexLock& lock) {
  writing_ = true;  // for good
  WaitForWriter(lock);
  stream_->WritesDone(Tag(kHalfClosed));
}

void MultiplexedStream::Refuse(const grpc::Status& status, List& refused) {
  for (const Waiting* call : next_) {
    const auto found = waiting_.find(call->number);
    found->second->status = status;
    found->second->answer.set_outcome(wire::kRefused);
    refused.push_back(std::move(found->second));
    waiting_.erase(found);
  }
  next_.clear();
}

void MultiplexedStream::End(const grpc::Status& status) {
  const grpc::Status end =
      status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server ended the stream") : status;
  List lost;
  {
    const MutexLock lock(mutex_);
    Refuse(end, lost);
    for (auto& [number, waiting] : waiting_) {
      waiting->status = end;
      lost.push_back(std::move(waiting));
    }
    waiting_.clear();
    // A stream that the server refused as a whole has an outcome, which is that of all its calls.
    if (const std::string outcome = OutcomeOf(context_); !outcome.empty()) {
      for (const auto& waiting : lost) waiting->answer.set_outcome(outcome);
    }
  }
  Wake(lost);
}

void MultiplexedStream::Wake(const List& done) {
  for (const auto& waiting : done) waiting->done.Notify();
}

}  // namespace kvstore::client
