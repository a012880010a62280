#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "blobstore/credentials.h"
#include "blobstore/http_session.h"
#include "blobstore/s3_location.h"
#include "blobstore/s3_options.h"
#include "blobstore/sigv4.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::s3 {

/// A request to a bucket, and the last answer to it. Must not move while it runs.
struct S3Call {
  std::string method;  ///< See HttpExchange.
  std::string name;    ///< The name of a blob, without the prefix; empty: the bucket itself.
  Fields query;
  Fields headers;           ///< Besides those that every request has.
  std::string_view body;    ///< Must outlive the call.
  std::string body_sha256;  ///< Hexadecimal; empty: it is computed.
  size_t max_answer_bytes = size_t{64} << 10;
  uint32_t stall_timeout_ms = 0;  ///< 0: that of the options.
  /// Is called before each attempt, and may change the request: to go on where the last attempt was cut off.
  /// May be null.
  std::function<void(S3Call&)> before_attempt;
  /// See HttpExchange::on_bytes. May be null.
  std::function<absl::Status(const HttpExchange&, std::string_view)> on_bytes;
  bool error_may_be_in_body = false;  ///< Whether an answer with status 200 may hold an error.

  HttpExchange exchange;
  /// Whether an earlier attempt may have done what was asked, although its answer says otherwise or was lost.
  bool may_be_done = false;
};

/// Makes signed requests to one bucket, and repeats those that fail in passing. Thread-safe; a thread that is
/// in a call moves the bytes of its own requests.
class S3Client {
 public:
  S3Client(S3Location location, const S3Options& options);

  const S3Location& location() const { return location_; }
  const S3Options& options() const { return options_; }

  /// Runs calls until all have succeeded, at most `parallel` of them at a time, or until one has failed for
  /// good, whose error is returned: as FailureOf says, with what was asked for. The other calls may or may
  /// not have succeeded then.
  ///
  /// limits  When to give up with DEADLINE_EXCEEDED or CANCELLED.
  absl::Status Run(std::span<S3Call> calls, size_t parallel, const CallLimits& limits = CallScope::Current());
  absl::Status Run(S3Call& call, const CallLimits& limits = CallScope::Current()) {
    return Run({&call, 1}, 1, limits);
  }

 private:
  class Runner;

  /// Signs a call and begins an attempt.
  absl::Status Begin(S3Call& call, HttpSession& session);
  std::unique_ptr<HttpSession> TakeSession();
  void GiveBack(std::unique_ptr<HttpSession> session);

  const S3Location location_;
  const S3Options options_;
  const HttpOptions http_options_;
  CredentialSource credentials_;
  Mutex mutex_;
  std::vector<std::unique_ptr<HttpSession>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::s3
