#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"
#include "reports/batch.h"
#include "reports/chunk_types.h"
#include "reports/compaction.h"
#include "reports/query.h"
#include "reports/report_types.h"
#include "reports/rollup_types.h"
#include "reports/writer.h"

namespace kvstore::reports {

/// The changes that can be made to a report after it was created.
struct ReportChange {
  std::optional<SegmentKey> add_key;  ///< Must have a default.
  std::vector<Metric> add_metrics;    ///< Their IDs are given by the store.
  std::optional<uint64_t> retention_ms;
  /// All roll-ups that the report is to have from now on; those that it has and are not here are removed.
  std::optional<std::vector<Rollup>> rollups;
};

/// A report with the values that its segment keys have had.
struct ReportDescription {
  ReportInfo info;
  std::map<std::string, std::vector<std::string>>
      segment_values;  ///< By segment key, in the order of their IDs.
};

/// The reports of one dataset, in this process (LocalReports) or behind a server (client/reports.h).
/// Thread-safe.
///
/// Every call keeps to the deadline and the cancellation of its caller's CallScope. NOT_FOUND names a report
/// or metric that there is none of, INVALID_ARGUMENT the field that is wrong.
class Reports {
 public:
  virtual ~Reports() = default;

  /// Creates a report, and the dataset if there is none yet. The IDs in `info` are given here. ALREADY_EXISTS
  /// if there is a report of that name.
  [[nodiscard]] virtual absl::Status Create(const ReportInfo& info) = 0;
  /// Makes all changes, or as many as it can before the first that fails; can be repeated.
  [[nodiscard]] virtual absl::Status Alter(std::string_view report, const ReportChange& change) = 0;
  /// Removes a report with all of its points.
  [[nodiscard]] virtual absl::Status Drop(std::string_view report) = 0;
  /// By name, ascending.
  [[nodiscard]] virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  /// The report with those of `metrics` that exist: what a Batch is made with. Reads these metrics alone.
  [[nodiscard]] virtual absl::StatusOr<ReportInfo> Info(std::string_view report,
                                                        const std::vector<std::string>& metrics) = 0;
  /// The report with its segments' values, and with all metrics, or those that are asked for and exist.
  [[nodiscard]] virtual absl::StatusOr<ReportDescription> Describe(
      std::string_view report, const std::optional<std::vector<std::string>>& metrics) = 0;
  /// Lists metrics by the beginning of their names, page by page. Reads the page alone, however many metrics
  /// there are. UNIMPLEMENTED by a server of an earlier version.
  [[nodiscard]] virtual absl::StatusOr<MetricPage> ListMetrics(std::string_view report,
                                                               const MetricListing& listing) = 0;
  /// Writes points; see WriteBatch.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> Write(const Batch& batch,
                                                       const WriteBatchOptions& options) = 0;
  /// Answers a query; see RunQuery.
  [[nodiscard]] virtual absl::StatusOr<QueryResult> Run(const Query& query) = 0;
  /// Deletes the points of these metrics in a span of time, as they are at this moment. Returns how many rows
  /// were touched.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> Delete(std::string_view report,
                                                        const std::vector<std::string>& metrics,
                                                        TimeSpan span) = 0;
  /// Merges chunks, and removes what is past the report's retention; see CompactReport.
  [[nodiscard]] virtual absl::StatusOr<CompactionResult> Compact(std::string_view report) = 0;
  /// Makes the report's roll-ups again where they are not up to date; see MakeRollups.
  [[nodiscard]] virtual absl::StatusOr<RollupResult> MakeRollups(std::string_view report) = 0;
};

/// The reports of a dataset of shape rows. The store must outlive what is returned. Cheap.
std::unique_ptr<Reports> LocalReports(KVStore& store, std::string dataset);

}  // namespace kvstore::reports
