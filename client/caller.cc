#include "client/caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "backend_api/outcome.h"
#include "base/jitter.h"
#include "base/random_number.h"
#include "client/outcome.h"
#include "client/token.h"
#include "kvstore_api/limits.h"
#include "wire/convert.h"

namespace kvstore::client {
namespace {

/// The pause between two attempts begins with the one, and doubles after each up to the other.
constexpr uint64_t kMinBackoffMs = 10;
constexpr uint64_t kMaxBackoffMs = 1'000;

MultiplexedStream::Metadata MetadataOf(const ConnectOptions& options) {
  MultiplexedStream::Metadata metadata;
  if (!options.token.empty()) metadata.emplace_back("authorization", "Bearer " + options.token);
  if (!options.backend.empty()) metadata.emplace_back(wire::kBackend, options.backend);
  return metadata;
}

}  // namespace

std::string NewRequestId() {
  std::string id(kRequestIdBytes, '\0');
  for (size_t at = 0; at < id.size(); at += sizeof(uint64_t)) {
    const uint64_t part = RandomNumber();
    id.replace(at, sizeof(part), reinterpret_cast<const char*>(&part), sizeof(part));
  }
  return id;
}

absl::StatusOr<std::unique_ptr<Caller>> Caller::Open(const std::string& address,
                                                     const ConnectOptions& options) {
  auto channels = Channels::Open(address, options);
  if (!channels.ok()) return channels.status();
  auto token = TokenFor(address, options);
  if (!token.ok()) return token.status();
  if (auto status = CheckMetadata("backend", options.backend); !status.ok()) return status;
  ConnectOptions used = options;
  used.token = *std::move(token);
  return std::unique_ptr<Caller>(new Caller(*std::move(channels), std::move(used)));
}

Caller::Caller(std::unique_ptr<Channels> channels, ConnectOptions options)
    : channels_(std::move(channels)),
      options_(std::move(options)),
      metadata_(MetadataOf(options_)),
      streams_(*channels_, metadata_) {}

grpc::ClientContext& Caller::Try::Context() {
  if (!context_) {
    caller_.Prepare(context_.emplace(), deadline_);
    watch_.emplace(*context_, CallScope::Current().cancelled);
  }
  return *context_;
}

std::string Caller::Try::outcome() const { return context_ ? OutcomeOf(*context_) : outcome_; }

grpc::Status Caller::AttemptOverStream(v1::Call& call, v1::Answer& answer, Try& attempt) {
  const auto kind = static_cast<int>(call.call_case());
  call.set_tell_moving(!CallScope::Current().waits);
  grpc::Status status = streams_.Get()->Execute(call, attempt.deadline(), answer);
  if (status.ok() && static_cast<int>(answer.answer_case()) != kind) {
    return {grpc::StatusCode::INTERNAL, "the server answered another call than this one"};
  }
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED && answer.outcome().empty())
    streams_.MarkUnsupported();
  attempt.SetOutcome(answer.outcome());
  return status;
}

void Caller::Prepare(grpc::ClientContext& context, std::optional<Clock::time_point> deadline) const {
  if (deadline) context.set_deadline(std::chrono::system_clock::now() + (*deadline - Clock::now()));
  for (const auto& [key, value] : metadata_) context.AddMetadata(key, value);
  if (!CallScope::Current().waits) context.AddMetadata(wire::kMoving, wire::kTell);
}

Caller::Clock::time_point Caller::Deadline() const {
  const auto& limits = CallScope::Current();
  return limits.deadline ? *limits.deadline : Clock::now() + std::chrono::milliseconds(options_.deadline_ms);
}

absl::Status Caller::InvalidAnswerError(std::string_view what) const {
  return absl::InternalError(fmt::format("server {}: {}", address(), what));
}

absl::Status Caller::CheckPage(int entries, size_t limit, std::string_view asked, std::string_view next,
                               bool may_be_empty) const {
  if (static_cast<size_t>(entries) > limit)
    return InvalidAnswerError("answered more entries than a page may have");
  if (!next.empty() && (next == asked || (entries == 0 && !may_be_empty))) {
    return InvalidAnswerError("answered a page that does not go on");
  }
  return absl::OkStatus();
}

Caller::Verdict Caller::Classify(const grpc::Status& status, const std::string& outcome, bool writes) const {
  if (status.ok()) return {};
  absl::Status error = wire::FromWire(status);
  if (outcome == wire::kRefused) return {.retry = true, .status = std::move(error)};
  if (outcome == wire::kMoved) return {.status = ServedElsewhereError(std::string(error.message()))};
  if (outcome == wire::kInDoubt) return {.status = MarkInDoubt(std::move(error))};
  if (!outcome.empty()) return {.status = std::move(error)};
  // The attempt was lost on the way there or back. A server that ends cancels the calls that are left, unless
  // this call's own caller has cancelled it.
  const bool by_server = absl::IsCancelled(error) && !absl::IsCancelled(CheckCall());
  const auto code = by_server ? absl::StatusCode::kUnavailable : error.code();
  std::string message(error.message());
  // gRPC's errors name a certificate that does not fit, but do not say when one side encrypts and the other
  // does not. Their texts let that be guessed.
  const auto says = [&](std::string_view text) { return message.find(text) != std::string::npos; };
  if (options_.tls && says("certificate verify failed")) {
    message +=
        options_.tls->ca.empty()
            ? "; no authority that this system trusts has issued its certificate: name the authority's file "
              "in tls.ca (--tls-ca)"
            : "; its certificate is not of an authority in the file that tls.ca (--tls-ca) names";
  } else if (options_.tls && says("handshake")) {
    message += "; does it speak TLS?";
  }
  if (!options_.tls && says("failed to connect") && says("Socket closed"))
    message += "; does it speak TLS only? Then give tls (--tls, --tls-ca)";
  error = absl::Status(code, fmt::format("server {}: {}{}", address(), message,
                                         writes ? "; the write may or may not have happened" : ""));
  if (writes) error = MarkInDoubt(std::move(error));
  const bool retry = absl::IsUnavailable(error);
  return {.retry = retry, .lost = true, .status = std::move(error)};
}

bool Caller::Pause(int attempt, std::optional<Clock::time_point> deadline) const {
  const uint64_t most = std::min<uint64_t>(kMinBackoffMs << std::min(attempt, 20), kMaxBackoffMs);
  // Clients that were refused together do not come back together.
  const auto pause = EqualJitter(std::chrono::milliseconds(most));
  if (deadline && Clock::now() + pause >= *deadline) return false;
  channels_->Pause(pause);
  return CheckCall().ok();
}

bool Caller::Pause(const Verdict& verdict, int attempt, std::optional<Clock::time_point> deadline) const {
  if (verdict.lost && options_.on_lost) {
    std::optional<std::chrono::milliseconds> left;
    if (deadline) left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now());
    options_.on_lost(verdict.status, left);
  }
  return Pause(attempt, deadline);
}

absl::Status Caller::Repeat(const Attempt& attempt, bool writes) const {
  if (auto status = CheckCall(); !status.ok()) return status;
  const auto deadline = Deadline();
  for (int count = 0;; ++count) {
    Try once(*this, deadline);
    const grpc::Status status = attempt(once);
    if (status.ok()) return absl::OkStatus();
    const Verdict verdict = Classify(status, once.outcome(), writes);
    if (!verdict.retry || IsInDoubt(verdict.status) || !Pause(verdict, count, deadline)) {
      return verdict.status;
    }
  }
}

absl::StatusOr<std::string> Caller::Instance() {
  {
    const MutexLock lock(mutex_);
    if (!instance_.empty()) return instance_;
  }
  // Without the lock, because other threads may have less time.
  v1::GetServerRequest request;
  v1::GetServerResponse server;
  absl::Status status = Call(request, server);
  if (!status.ok()) return status;
  const MutexLock lock(mutex_);
  instance_ = server.instance();
  return instance_;
}

absl::Status Caller::RepeatWrite(v1::Attempt& names, const Attempt& attempt) {
  if (auto status = CheckCall(); !status.ok()) return status;
  const auto deadline = Deadline();
  const CallScope scope(CallLimits{.deadline = deadline});
  // Asked before the first attempt: afterwards another server could answer.
  const auto instance = Instance();
  if (!instance.ok()) return instance.status();
  const auto sent = Clock::now();
  if (names.request_id().empty()) names.set_request_id(NewRequestId());
  bool in_doubt = false;
  for (int count = 0;; ++count) {
    Try once(*this, deadline);
    const grpc::Status status = attempt(once);
    if (status.ok()) return absl::OkStatus();
    const Verdict verdict = Classify(status, once.outcome(), /*writes=*/true);
    in_doubt = in_doubt || IsInDoubt(verdict.status);
    if (in_doubt) names.clear_first();
    if (in_doubt && names.instance().empty()) {
      names.set_instance(*instance);
      // The next write must ask which server there is by then.
      const MutexLock lock(mutex_);
      instance_.clear();
    }
    if (!verdict.retry || !Pause(verdict, count, deadline)) {
      if (!in_doubt) return verdict.status;
      // Other marks of the error are dropped: routers would repeat a call that is "moved", because that means
      // that nothing was done.
      return MarkInDoubt(absl::Status(verdict.status.code(), verdict.status.message()));
    }
    if (!names.instance().empty() && !names.has_sent_us()) SetSentTime(names, sent);
  }
}

void Caller::SetSentTime(v1::Attempt& names, Clock::time_point sent) {
  v1::GetServerRequest request;
  v1::GetServerResponse server;
  const absl::Status status = Call(request, server);
  if (!status.ok() || server.instance() != names.instance() || server.clock_us() == 0) return;
  // The server read its clock before now, so the result is too early by the time of the way back. That is the
  // safe side, and so is a thousandth for clocks that run at different speeds.
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - sent);
  const auto since = static_cast<uint64_t>(passed.count() + passed.count() / 1'000 + 1);
  names.set_sent_us(server.clock_us() > since ? server.clock_us() - since : 0);
}

}  // namespace kvstore::client
