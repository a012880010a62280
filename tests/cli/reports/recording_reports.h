#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "reports/reports.h"

namespace kvstore::testing {

/// Reports that keep what is written to them, for tests of what loaders send and in which order. It knows one
/// report. Thread-safe.
class RecordingReports : public reports::Reports {
 public:
  struct Written {
    std::string batch;
    bool add = false;
    /// "METRIC TIME SEGMENT,SEGMENT=NUMBER", in the order of the batch; of sets and distributions without a
    /// number.
    std::vector<std::string> points;
  };

  /// info  with all metrics of the report.
  explicit RecordingReports(reports::ReportInfo info) : info_(std::move(info)) {}

  /// Called before a batch counts as written, without a lock; an error fails the write.
  std::function<absl::Status(const reports::Batch& batch)> before_write;

  std::vector<Written> written() const;
  /// The points of all batches, one after the other.
  std::vector<std::string> points() const;
  /// The names of metrics that were asked for, call by call.
  std::vector<std::vector<std::string>> asked() const;

  absl::StatusOr<reports::ReportInfo> Info(std::string_view report,
                                           const std::vector<std::string>& metrics) override;
  absl::StatusOr<uint64_t> Write(const reports::Batch& batch,
                                 const reports::WriteBatchOptions& options) override;

  // Loaders do not use these.
  absl::Status Create(const reports::ReportInfo&) override { return No(); }
  absl::Status Alter(std::string_view, const reports::ReportChange&) override { return No(); }
  absl::Status Drop(std::string_view) override { return No(); }
  absl::StatusOr<std::vector<std::string>> List() override { return No(); }
  absl::StatusOr<reports::ReportDescription> Describe(
      std::string_view, const std::optional<std::vector<std::string>>&) override {
    return No();
  }
  absl::StatusOr<reports::MetricPage> ListMetrics(std::string_view, const reports::MetricListing&) override {
    return No();
  }
  absl::StatusOr<reports::QueryResult> Run(const reports::Query&) override { return No(); }
  absl::StatusOr<uint64_t> Delete(std::string_view, const std::vector<std::string>&,
                                  reports::TimeSpan) override {
    return No();
  }
  absl::StatusOr<reports::CompactionResult> Compact(std::string_view) override { return No(); }
  absl::StatusOr<reports::RollupResult> MakeRollups(std::string_view) override { return No(); }

 private:
  static absl::Status No() { return absl::UnimplementedError("loaders do not use this"); }

  const reports::ReportInfo info_;
  mutable Mutex mutex_;
  std::vector<Written> written_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<std::string>> asked_ ABSL_GUARDED_BY(mutex_);
};

/// A report with the segment keys country (without default) and app (default "none"), and the metrics clicks,
/// cost (values), users (distinct) and delay (distribution), with a resolution of one second.
reports::ReportInfo SiteReport();

}  // namespace kvstore::testing
