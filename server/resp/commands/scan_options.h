#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/resp/commands/command.h"

namespace kvstore::server::resp {

/// The cursor and the options of SCAN, HSCAN and ZSCAN.
struct ScanArguments {
  uint64_t cursor = 0;
  std::string_view pattern = "*";
  uint32_t count = 10;
  std::string type;  ///< In lower case; empty: all.
  bool no_values = false;
};

/// Which options a command has beside MATCH and COUNT.
struct ScanOptionsKnown {
  bool type = false;
  bool no_values = false;
};

/// Reads the arguments from the cursor on. INVALID_ARGUMENT says what is wrong.
absl::StatusOr<ScanArguments> ReadScanOptions(Arguments arguments, ScanOptionsKnown known);

/// The error of a cursor that Cursors does not have.
absl::Status UnknownCursorError();

}  // namespace kvstore::server::resp
