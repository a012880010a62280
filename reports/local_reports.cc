#include <fmt/format.h>

#include <utility>

#include "reports/deletes.h"
#include "reports/metadata.h"
#include "reports/reports.h"
#include "reports/rollup.h"
#include "reports/run_query.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// The reports of a dataset of a store in this process.
class OfStore : public Reports {
 public:
  OfStore(KVStore& store, std::string dataset) : metadata_(store, std::move(dataset)) {}

  absl::Status Create(const ReportInfo& info) override { return metadata_.Create(info).status(); }
  absl::Status Alter(std::string_view report, const ReportChange& change) override;
  absl::Status Drop(std::string_view report) override { return DropReport(metadata_, std::string(report)); }
  absl::StatusOr<std::vector<std::string>> List() override { return metadata_.List(); }
  absl::StatusOr<ReportInfo> Info(std::string_view report, const std::vector<std::string>& metrics) override {
    return metadata_.Get(report, metrics);
  }
  absl::StatusOr<ReportDescription> Describe(std::string_view report,
                                             const std::optional<std::vector<std::string>>& metrics) override;
  absl::StatusOr<MetricPage> ListMetrics(std::string_view report, const MetricListing& listing) override {
    return metadata_.ListMetrics(report, listing);
  }
  absl::StatusOr<uint64_t> Write(const Batch& batch, const WriteBatchOptions& options) override {
    return WriteBatch(metadata_, batch, options);
  }
  absl::StatusOr<QueryResult> Run(const Query& query) override { return RunQuery(metadata_, query); }
  absl::StatusOr<uint64_t> Delete(std::string_view report, const std::vector<std::string>& metrics,
                                  TimeSpan span) override;
  absl::StatusOr<CompactionResult> Compact(std::string_view report) override {
    return CompactReport(metadata_, std::string(report), {});
  }
  absl::StatusOr<RollupResult> MakeRollups(std::string_view report) override {
    return reports::MakeRollups(metadata_, std::string(report));
  }

 private:
  const Metadata metadata_;
};

absl::Status OfStore::Alter(std::string_view report, const ReportChange& change) {
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata_.Get(report, {}));
  if (change.add_key) {
    // An earlier attempt may have added the key before a later change failed.
    const auto number = info.KeyNumber(change.add_key->name);
    const bool added = number && info.keys[*number] == *change.add_key;
    if (!added) KV_RETURN_IF_ERROR(metadata_.AddKey(report, *change.add_key));
  }
  KV_RETURN_IF_ERROR(metadata_.AddMetrics(report, change.add_metrics));
  if (change.retention_ms) KV_RETURN_IF_ERROR(metadata_.SetRetention(report, *change.retention_ms));
  if (change.rollups) KV_RETURN_IF_ERROR(metadata_.SetRollups(std::string(report), *change.rollups));
  return absl::OkStatus();
}

absl::StatusOr<ReportDescription> OfStore::Describe(std::string_view report,
                                                    const std::optional<std::vector<std::string>>& metrics) {
  ReportDescription description;
  KV_ASSIGN_OR_RETURN(description.info, metrics ? metadata_.Get(report, *metrics) : metadata_.GetAll(report));
  for (uint32_t key = 0; key < description.info.keys.size(); ++key) {
    KV_ASSIGN_OR_RETURN(description.segment_values[description.info.keys[key].name],
                        metadata_.AllValues(report, key));
  }
  return description;
}

absl::StatusOr<uint64_t> OfStore::Delete(std::string_view report, const std::vector<std::string>& metrics,
                                         TimeSpan span) {
  if (metrics.empty()) return absl::InvalidArgumentError("metrics: name at least one");
  if (span.from > span.to) return absl::InvalidArgumentError("from, to: 'from' must be no later than 'to'");
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata_.Get(report, metrics));
  for (const std::string& name : metrics) {
    if (info.FindMetric(name) == nullptr)
      return absl::NotFoundError(fmt::format("metrics: report '{}' has no metric '{}'", report, name));
  }
  return DeletePoints(metadata_, info, span);
}

}  // namespace

std::unique_ptr<Reports> LocalReports(KVStore& store, std::string dataset) {
  return std::make_unique<OfStore>(store, std::move(dataset));
}

}  // namespace kvstore::reports
