#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "bench/reports/point_set.h"
#include "kvstore_api/kvstore.h"
#include "reports/reports.h"

/// Ways to load the points of a set.
namespace kvstore::bench {

inline constexpr size_t kPointsOfBatch = 100'000;

/// How long loading took.
struct LoadTime {
  uint64_t points = 0;
  double seconds = 0;
  double rate() const { return static_cast<double>(points) / seconds; }
};

/// Creates the report of a set and writes its points in batches of kPointsOfBatch. Only filling and writing
/// the batches is timed, not making the points.
absl::StatusOr<LoadTime> LoadPoints(reports::Reports& reports, const PointSet& set, PointOrder order);

/// Creates the report of a set in a dataset and writes its points by requests of the JSON form
/// (write_points), each with kPointsOfBatch points, as `kv exec` carries them out. Making the text of a
/// request is not timed.
absl::StatusOr<LoadTime> LoadJson(KVStore& store, const std::string& dataset, const PointSet& set);

/// Writes the points of a set as CSV: metric,time,country,app,gender,value with the time as "2013-01-01".
absl::Status WriteCsv(const PointSet& set, const std::filesystem::path& file);

/// Writes the points of a set with one metric as `kv report load` takes them: as points.csv and points.jsonl
/// in a folder, which is made.
absl::Status WriteLoadFiles(const PointSet& set, const std::filesystem::path& folder);

}  // namespace kvstore::bench
