#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "bench/rows/steady_bench.h"
#include "json/json.h"

namespace kvstore::bench {

/// Writes the report as a page of Markdown, with pictures beside it: for docs/steady.md
/// docs/steady-latency.svg, -memory.svg, -disk.svg and -files.svg.
absl::Status WritePage(const SteadyReport& report, const std::filesystem::path& page);

Json ToJson(const SteadyReport& report);

}  // namespace kvstore::bench
