#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "bench/reports/load_points.h"
#include "bench/reports/point_set.h"
#include "reports/reports.h"

namespace kvstore::bench {

/// Creates the report of a set with one metric and loads one of the files that WriteLoadFiles made of it, as
/// `kv report load` does: from the first byte of the file until the last batch is written.
absl::StatusOr<LoadTime> LoadFromFile(reports::Reports& reports, const PointSet& set,
                                      const std::filesystem::path& file);

}  // namespace kvstore::bench
