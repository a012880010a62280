#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/call/line_limit.h"

namespace kvstore::server {

/// What the log says about a call, beside its status.
struct CallRecord {
  std::string_view operation;
  std::string_view door;  ///< The protocol, as NameOf has it.
  std::string_view dataset;
  std::string_view backend;
  std::string_view principal;
  std::string peer;
  double seconds = 0;
  size_t request_bytes = 0;
  size_t response_bytes = 0;
};

/// Logs a line of JSON for each call that was slow, or failed for another reason than its own arguments. No
/// values, keys or tokens are logged. Lines are limited to 50 a second, and the first line of a later second
/// says how many were left out; a message beyond 500 bytes is cut. The JSON is ASCII, so that no terminal
/// acts on a line. Thread-safe.
class CallLog {
 public:
  /// slow_ms  Calls that take at least so long are slow; 0: none is.
  explicit CallLog(uint32_t slow_ms) : slow_seconds_(slow_ms / 1e3) {}

  /// Returns whether such a call is to be logged.
  bool Wants(double seconds, const absl::Status& status) const;
  void Write(const CallRecord& record, const absl::Status& status);

 private:
  static constexpr int kLinesPerSecond = 50;

  const double slow_seconds_;  // 0: none is slow
  LineLimit lines_{kLinesPerSecond};
};

}  // namespace kvstore::server
