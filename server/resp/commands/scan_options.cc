#include "server/resp/commands/scan_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/resp/commands/errors.h"
#include "server/resp/commands/numbers.h"
#include "server/resp/commands/words.h"

namespace kvstore::server::resp {
namespace {

/// COUNT is a hint: no more than this is looked at for one answer.
constexpr uint64_t kMaxCount = 1'000;
/// Matching takes time in proportion to the sizes of the pattern and of the key, which has at most a few KiB.
constexpr size_t kMaxPatternBytes = size_t{1} << 10;
/// With a pattern of more bytes fewer keys are looked at for one answer, so that it takes no longer.
constexpr size_t kUsualPatternBytes = 64;

}  // namespace

absl::StatusOr<ScanArguments> ReadScanOptions(Arguments arguments, ScanOptionsKnown known) {
  ScanArguments scan;
  const auto cursor = ParseUnsigned(arguments[0]);
  if (!cursor) return absl::InvalidArgumentError("invalid cursor");
  scan.cursor = *cursor;
  for (size_t i = 1; i < arguments.size();) {
    const bool has_value = i + 1 < arguments.size();
    if (Is(arguments[i], "match") && has_value) {
      scan.pattern = arguments[i + 1];
      if (scan.pattern.size() > kMaxPatternBytes) {
        return absl::InvalidArgumentError(fmt::format(
            "MATCH: a pattern has at most {} bytes, this one has {}", kMaxPatternBytes, scan.pattern.size()));
      }
      i += 2;
    } else if (Is(arguments[i], "count") && has_value) {
      const auto count = ParseUnsigned(arguments[i + 1]);
      if (!count) return NotAnIntegerError();
      if (*count == 0) return SyntaxError();
      scan.count = static_cast<uint32_t>(std::min(*count, kMaxCount));
      i += 2;
    } else if (Is(arguments[i], "type") && has_value && known.type) {
      scan.type = LowerCase(arguments[i + 1]);
      i += 2;
    } else if (Is(arguments[i], "novalues") && known.no_values) {
      scan.no_values = true;
      ++i;
    } else {
      return SyntaxError();
    }
  }
  if (scan.pattern.size() > kUsualPatternBytes) {
    const uint64_t most = kMaxCount * kUsualPatternBytes / scan.pattern.size();
    scan.count = static_cast<uint32_t>(std::min<uint64_t>(scan.count, most));
  }
  return scan;
}

absl::Status UnknownCursorError() {
  return absl::InvalidArgumentError(
      "cursor: it is not known here, because it is another key's or caller's, or too old, or the server was "
      "started again; begin again with 0");
}

}  // namespace kvstore::server::resp
