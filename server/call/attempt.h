#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/call/call_info.h"
#include "server/call/operation.h"
#include "server/call/request_memory.h"

namespace kvstore::server {

struct Core;

/// One attempt of a write that carries a request ID: finds out whether an earlier attempt was carried out,
/// and keeps the answer of this one for the next. Externally synchronised.
class Attempt {
 public:
  /// The ID that a client gives its write, and in a retry what the client knows of earlier attempts.
  struct Claims {
    std::string_view request_id;  ///< kRequestIdBytes random bytes, the same in all attempts.
    /// In a retry: the instance (Core::instance) of the server that received the attempt before. Empty in a
    /// first attempt, and where the client does not know it.
    std::string_view instance;
    /// In a retry: a time no later than when the first attempt was sent, since Core::epoch.
    std::optional<std::chrono::microseconds> sent;
  };

  /// core  Must outlive the attempt.
  Attempt(Core& core, Operation operation, Door door) : core_(core), operation_(operation), door_(door) {}

  /// Returns nothing if the call is to be carried out now; Remember must be called then. Else it returns what
  /// the call ends with; if that is OK, `answer` has the response of the earlier attempt.
  ///
  /// caller  The name under which the caller's answers are remembered, so that nobody gets the answer to
  ///         somebody else's request. Must outlive the attempt.
  std::optional<absl::Status> Begin(std::string_view caller, const Claims& claims,
                                    RequestMemory::Answer& answer);
  /// Returns whether the call has begun and Remember is to be called.
  bool begun() const { return begun_; }
  /// Keeps the end of the call for retries, unless it has failed for certain.
  ///
  /// answer  Its response, if `status` is OK.
  void Remember(const absl::Status& status, RequestMemory::Answer answer);

 private:
  /// Returns whether the store itself knows which of these calls it has carried out, as it does for creates.
  bool IsStored() const { return operation_ == Operation::kCreateObject; }

  Core& core_;
  const Operation operation_;
  const Door door_;
  std::string_view caller_;
  std::string id_;      // its key in the memory of requests
  bool begun_ = false;  // noted there as running
};

}  // namespace kvstore::server
