#pragma once

#include <cstdint>
#include <functional>

#include "cli/reports/load_target.h"
#include "reports/reports.h"

namespace kvstore::cli {

/// Reads the points of a file of comma-separated values (csv_reader.h) into a target. The heading names the
/// columns: `time`, each segment key (one with a default may be left out), and metrics, of which at least
/// one. Each cell of a metric is a point; an empty one is none. An empty cell of a segment key stands for the
/// key's default, and "" for the empty text.
///
/// file      a file descriptor.
/// progress  told from time to time how many bytes were read.
///
/// Throws Failure: INVALID_ARGUMENT for a heading that does not fit the report.
void LoadCsv(reports::Reports& reports, const LoadOptions& options, int file, LoadTarget& target,
             const std::function<void(uint64_t bytes)>& progress);

}  // namespace kvstore::cli
