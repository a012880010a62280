#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/resp/commands/command.h"

/// The parts of KV.GET and KV.SCAN that are the same in both.
namespace kvstore::server::resp {

/// The options of a read of rows, as the arguments give them.
struct PageOptions {
  std::optional<std::vector<std::string>> columns;
  uint32_t versions = 1;
  TimeRange range;
  std::optional<uint32_t> limit;
  std::string marker;
  std::string_view start;  ///< KV.SCAN: where the range begins, and where it ends; empty: at the ends.
  std::string_view end;
};

/// Reads the option that begins at arguments[i], and steps past it. INVALID_ARGUMENT if it is none.
///
/// KV.GET leaves START and END to KV.SCAN, and passes `scans` as false.
absl::Status ReadPageOption(Arguments arguments, size_t& i, PageOptions& options, bool scans = false);

/// Appends columns with their cells: [[column, [[timestamp, value], ...]], ...].
void AppendItems(const std::vector<Item>& items, Encoder& out);
/// Appends where the next page begins; null if this was the last one.
void AppendMarker(std::string_view marker, Encoder& out);

/// Carries out KV.SCAN.
absl::Status ScanStore(StoreCall& call, Arguments arguments, Encoder& out);

}  // namespace kvstore::server::resp
