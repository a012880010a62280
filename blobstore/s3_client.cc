#include "blobstore/s3_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <optional>

#include "base/clock.h"
#include "base/jitter.h"
#include "blobstore/s3_errors.h"
#include "blobstore/s3_request.h"
#include "blobstore/sha256.h"

namespace kvstore::s3 {
namespace {

using Clock = CallLimits::Clock;
using std::chrono::milliseconds;

constexpr size_t kIdleSessions = 16;
constexpr milliseconds kLongestDelay{10'000};
/// An attempt that has received this much has got somewhere, even if it was cut off then.
constexpr uint64_t kProgressBytes = uint64_t{256} << 10;
/// How often a cancelled call is noticed.
constexpr milliseconds kCancelPoll{100};

absl::Status WithContext(const S3Location& location, const S3Call& call, const absl::Status& status,
                         std::string_view after = "") {
  return absl::Status(status.code(), fmt::format("{}: {} {}: {}{}", location.url, call.method,
                                                 call.name.empty() ? "the bucket" : call.name,
                                                 std::string(status.message()), after));
}

}  // namespace

/// One run of calls.
class S3Client::Runner {
 public:
  Runner(S3Client& client, std::span<S3Call> calls, size_t parallel, const CallLimits& limits)
      : client_(client),
        waiting_(calls),
        parallel_(parallel),
        limits_(limits),
        session_(client.TakeSession()) {}
  ~Runner() {
    session_->EndAll();
    client_.GiveBack(std::move(session_));
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  absl::Status Run() {
    while (!waiting_.empty() || !begun_.empty()) {
      while (!waiting_.empty() && begun_.size() < parallel_) {
        begun_.push_back({.call = &waiting_.front()});
        waiting_ = waiting_.subspan(1);
      }
      if (auto status = CheckLimits(); !status.ok()) return status;
      if (auto status = BeginThoseDue(); !status.ok()) return status;
      const HttpExchange* const ended = session_->Wait(NextWake());
      if (ended == nullptr) continue;
      if (auto status = End(ended); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  /// A call that has begun and not ended.
  struct Begun {
    S3Call* call = nullptr;
    bool in_flight = false;
    Clock::time_point due;  // when the next attempt begins
    int failures = 0;       // attempts since the last progress that failed
    Clock::time_point failing_since;
    absl::Status last;      // how the last attempt failed
    uint64_t received = 0;  // bytes that on_bytes got in this attempt
  };

  absl::Status CheckLimits() const {
    const Begun& first = begun_.front();
    const std::string last =
        first.last.ok() ? "" : fmt::format("; before, {}", std::string(first.last.message()));
    if (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) {
      return WithContext(client_.location_, *first.call,
                         absl::CancelledError("the caller has cancelled the call"), last);
    }
    if (limits_.deadline && Clock::now() >= *limits_.deadline) {
      return WithContext(client_.location_, *first.call,
                         absl::DeadlineExceededError("the call's deadline has passed"), last);
    }
    return absl::OkStatus();
  }

  absl::Status BeginThoseDue() {
    const auto now = Clock::now();
    for (Begun& begun : begun_) {
      if (begun.in_flight || begun.due > now) continue;
      begun.received = 0;
      if (auto status = client_.Begin(*begun.call, *session_); !status.ok()) {
        return WithContext(client_.location_, *begun.call, status);
      }
      S3Call& call = *begun.call;
      if (call.on_bytes != nullptr) {
        call.exchange.on_bytes = [&call, &begun](std::string_view bytes) {
          begun.received += bytes.size();
          return call.on_bytes(call.exchange, bytes);
        };
      }
      begun.in_flight = true;
    }
    return absl::OkStatus();
  }

  Clock::time_point NextWake() const {
    auto wake = Clock::now() + (limits_.cancelled == nullptr ? milliseconds(10'000) : kCancelPoll);
    if (limits_.deadline) wake = std::min(wake, *limits_.deadline);
    for (const Begun& begun : begun_) {
      if (!begun.in_flight) wake = std::min(wake, begun.due);
    }
    return wake;
  }

  absl::Status End(const HttpExchange* ended) {
    const auto at = std::find_if(begun_.begin(), begun_.end(),
                                 [&](const Begun& begun) { return &begun.call->exchange == ended; });
    S3Call& call = *at->call;
    if (call.exchange.sent_before) call.may_be_done = true;
    auto failure = FailureOf(call.exchange, client_.location_, WallClockMs());
    if (!failure && call.error_may_be_in_body)
      failure = FailureInBody(call.exchange, client_.location_, WallClockMs());
    if (!failure) {
      begun_.erase(at);
      return absl::OkStatus();
    }
    return Retry(*at, *failure);
  }

  /// Sets up the next attempt; returns the failure if there is to be none.
  absl::Status Retry(Begun& begun, const S3Failure& failure) {
    const auto now = Clock::now();
    if (begun.received >= kProgressBytes) begun.failures = 0;
    if (begun.failures == 0) begun.failing_since = now;
    const auto until = begun.failing_since + milliseconds(client_.options_.retry_for_ms);
    ++begun.failures;
    const auto delay = std::max(FullJitter(milliseconds(client_.options_.retry_base_ms), kLongestDelay,
                                           static_cast<unsigned>(begun.failures)),
                                milliseconds(failure.retry_after_ms));
    if (!failure.may_retry || now + delay > until) {
      const std::string after = begun.failures < 2 ? "" : fmt::format(" (attempt {})", begun.failures);
      return WithContext(client_.location_, *begun.call, failure.status, failure.may_retry ? after : "");
    }
    begun.call->may_be_done = true;
    begun.last = failure.status;
    begun.in_flight = false;
    begun.due = now + delay;
    return absl::OkStatus();
  }

  S3Client& client_;
  std::span<S3Call> waiting_;
  const size_t parallel_;
  const CallLimits limits_;
  std::unique_ptr<HttpSession> session_;
  std::list<Begun> begun_;  // a list, because on_bytes refers to its elements
};

S3Client::S3Client(S3Location location, const S3Options& options)
    : location_(std::move(location)),
      options_(options),
      http_options_{.ca_file = options.ca_file,
                    .connect_timeout_ms = options.connect_timeout_ms,
                    .no_proxy = location_.is_local,
                    .connections = options.parallel_reads},
      credentials_(options.credentials_file, options.profile) {}

absl::Status S3Client::Run(std::span<S3Call> calls, size_t parallel, const CallLimits& limits) {
  return Runner(*this, calls, parallel, limits).Run();
}

absl::Status S3Client::Begin(S3Call& call, HttpSession& session) {
  const auto credentials = credentials_.Current();
  if (!credentials.ok()) return credentials.status();
  if (call.before_attempt != nullptr) call.before_attempt(call);
  if (call.body_sha256.empty()) call.body_sha256 = Hex(Sha256Of(call.body));
  S3Request request = SignRequest(location_, *credentials,
                                  {.method = call.method,
                                   .name = call.name,
                                   .query = call.query,
                                   .headers = call.headers,
                                   .body_sha256 = call.body_sha256},
                                  WallClockMs());

  call.exchange =
      HttpExchange{.method = call.method, .body = call.body, .max_answer_bytes = call.max_answer_bytes};
  call.exchange.stall_timeout_ms =
      call.stall_timeout_ms != 0 ? call.stall_timeout_ms : options_.stall_timeout_ms;
  call.exchange.url = std::move(request.url);
  call.exchange.headers = std::move(request.headers);
  session.Begin(call.exchange);
  return absl::OkStatus();
}

std::unique_ptr<HttpSession> S3Client::TakeSession() {
  const MutexLock lock(mutex_);
  if (idle_.empty()) return std::make_unique<HttpSession>(http_options_);
  auto session = std::move(idle_.back());
  idle_.pop_back();
  return session;
}

void S3Client::GiveBack(std::unique_ptr<HttpSession> session) {
  const MutexLock lock(mutex_);
  if (idle_.size() < kIdleSessions) idle_.push_back(std::move(session));
}

}  // namespace kvstore::s3
