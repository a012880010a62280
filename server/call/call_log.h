#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/call/line_limit.h"

namespace kvstore::server {

/// The fields of a call's line in the log, beside its status.
struct CallRecord {
  std::string_view operation;
  std::string_view dataset;
  std::string_view backend;
  std::string_view principal;
  std::string peer;
  std::string_view door;  ///< By which protocol the call came.
  double seconds = 0;
  size_t request_bytes = 0;
  size_t response_bytes = 0;
  std::string_view what = {};  ///< The work that was asked for, in words; empty: the operation says it.
  bool begins = false;         ///< The call begins, and has no result yet.
  /// The line is written however many others there are: for calls of operators who have the right to them.
  bool is_audited = false;
};

/// Logs a line of JSON for each call that was slow, or failed for another reason than its own arguments; for
/// calls that failed by these (INVALID_ARGUMENT), where the level of the log is debug. No values, keys or
/// tokens are logged. Lines are limited to 50 a second, those of the level debug apart from the others, and
/// the first line of a later second says how many were left out; a message beyond 500 bytes is cut. The JSON
/// is ASCII, so that no terminal acts on a line. The calls of operators on shards are logged all, whatever
/// their result. Thread-safe.
class CallLog {
 public:
  /// slow_ms  Calls that take at least so long are slow; 0: none is.
  explicit CallLog(uint32_t slow_ms) : slow_seconds_(slow_ms / 1e3) {}

  /// Returns whether such a call is to be logged.
  bool Wants(double seconds, const absl::Status& status) const;
  void Write(const CallRecord& record, const absl::Status& status);

 private:
  static constexpr int kLinesPerSecond = 50;

  bool IsSlow(double seconds) const;

  const double slow_seconds_;  // 0: none is slow
  LineLimit lines_{kLinesPerSecond};
  LineLimit details_{kLinesPerSecond};  // of the level debug
};

}  // namespace kvstore::server
