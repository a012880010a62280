#include "server/http/caller_reports.h"

#include <utility>

#include "reports/json_operations.h"

namespace kvstore::server {
namespace {

using reports::Reports;

/// The memory that a part of an answer takes as JSON, about: measured with nlohmann 3.11 and glibc.
constexpr size_t kPointBytes = 160;
constexpr size_t kSeriesBytes = 1'000;
constexpr size_t kNameBytes = 200;

class CallerReports : public Reports {
 public:
  CallerReports(Core& core, std::shared_ptr<const Principal> principal, std::string dataset,
                HeldMemory& memory)
      : core_(core),
        principal_(std::move(principal)),
        dataset_(std::move(dataset)),
        memory_(memory),
        reports_(reports::LocalReports(core.router, dataset_)) {}

  /// A right on a report is none to create its dataset.
  absl::Status Create(const reports::ReportInfo& info) override {
    absl::Status right = CheckRight(principal_.get(), dataset_, Right::kAdmin);
    if (!right.ok() && !core_.router.GetDataset(dataset_).ok()) return right;
    return reports_->Create(info);
  }
  absl::Status Alter(std::string_view report, const reports::ReportChange& change) override {
    return reports_->Alter(report, change);
  }
  absl::Status Drop(std::string_view report) override { return reports_->Drop(report); }

  absl::StatusOr<std::vector<std::string>> List() override {
    // A caller without any right here is not told whether there is such a dataset.
    if (principal_ != nullptr && !principal_->MayKnowOf(dataset_))
      return CheckRight(principal_.get(), dataset_, Right::kRead);
    auto names = reports_->List();
    if (!names.ok()) return names;
    // The dataset that is meant when none is named is created with its first report.
    if (names->empty() && dataset_ != reports::kDefaultDataset) {
      if (const auto found = core_.router.GetDataset(dataset_); !found.ok()) return found.status();
    }
    std::erase_if(*names, [this](const std::string& name) {
      return !CheckRight(principal_.get(), dataset_, Right::kRead, name).ok();
    });
    return names;
  }

  absl::StatusOr<reports::ReportInfo> Info(std::string_view report,
                                           const std::vector<std::string>& metrics) override {
    return reports_->Info(report, metrics);
  }
  absl::StatusOr<reports::ReportDescription> Describe(
      std::string_view report, const std::optional<std::vector<std::string>>& metrics) override {
    auto described = reports_->Describe(report, metrics);
    if (!described.ok()) return described;
    size_t bytes = described->info.metrics.size() * kSeriesBytes;
    for (const auto& [key, values] : described->segment_values) bytes += values.size() * kNameBytes;
    if (auto status = memory_.Hold(bytes); !status.ok()) return status;
    return described;
  }
  absl::StatusOr<reports::MetricPage> ListMetrics(std::string_view report,
                                                  const reports::MetricListing& listing) override {
    return reports_->ListMetrics(report, listing);
  }
  absl::StatusOr<uint64_t> Write(const reports::Batch& batch,
                                 const reports::WriteBatchOptions& options) override {
    return reports_->Write(batch, options);
  }

  absl::StatusOr<reports::QueryResult> Run(const reports::Query& query) override {
    reports::Query limited = query;
    limited.limits.max_memory_bytes = core_.options.limits.query_bytes;
    auto result = reports_->Run(limited);
    if (!result.ok()) return result;
    size_t bytes = 0;
    for (const reports::ResultSeries& series : result->series) {
      const size_t compared = series.compared ? series.compared->size() : 0;
      bytes += kSeriesBytes + (series.points.size() + compared) * kPointBytes;
    }
    if (auto status = memory_.Hold(bytes); !status.ok()) return status;
    return result;
  }

  absl::StatusOr<uint64_t> Delete(std::string_view report, const std::vector<std::string>& metrics,
                                  reports::TimeSpan span) override {
    return reports_->Delete(report, metrics, span);
  }
  absl::StatusOr<reports::CompactionResult> Compact(std::string_view report) override {
    return reports_->Compact(report);
  }
  absl::StatusOr<reports::RollupResult> MakeRollups(std::string_view report) override {
    return reports_->MakeRollups(report);
  }

 private:
  Core& core_;
  const std::shared_ptr<const Principal> principal_;
  const std::string dataset_;
  HeldMemory& memory_;
  const std::unique_ptr<Reports> reports_;
};

}  // namespace

std::unique_ptr<Reports> ReportsOfCaller(Core& core, std::shared_ptr<const Principal> principal,
                                         std::string dataset, HeldMemory& memory) {
  return std::make_unique<CallerReports>(core, std::move(principal), std::move(dataset), memory);
}

}  // namespace kvstore::server
