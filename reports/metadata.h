#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"
#include "reports/report_types.h"

/// The metadata of reports: one row for each, with a column for each thing, so that a call reads what it
/// needs and no more, however many metrics and values a report has. Stored:
///
///   info              {"format":1, "id", "resolution_ms", "period_s", "salts", "retention_ms"}
///   key/N             {"name", "default" (if it has one)}
///   metric/NAME       {"id", "kind"}
///   value/N/ID        the bytes of a value of key N; ID 0 is the key's default
///   id/N/VALUE        the ID of that value
///   rollups           {"next", "rollups": [{"id", "keys": [numbers of keys], "step_ms"}, ...]}
///   next/metric, next/key, next/value/N    the next number to give, in decimal
///
/// Numbers are given by conditional puts: what is new and the raised counter are written together if the
/// counter is still the one that was read, and who comes second reads again. So loaders can race. Counters
/// are made together with what they count: where one is missing the report is gone, and nothing is written
/// for it. Roll-ups are one column, which is replaced if it is still the one that was read: they are few,
/// change together, and no ID of one can ever be given to another.
namespace kvstore::reports {

/// Thread-safe, as the store is. NOT_FOUND names a report that there is none of; DATA_LOSS for metadata that
/// does not decode.
class Metadata {
 public:
  /// `dataset`, of shape rows, holds all reports of the store. Both must outlive this.
  Metadata(KVStore& store, std::string dataset) : store_(store), dataset_(std::move(dataset)) {}

  KVStore& store() const { return store_; }
  const std::string& dataset() const { return dataset_; }

  /// Creates a report, and the dataset if there is none yet. The IDs in `info` are given here.
  ///
  /// INVALID_ARGUMENT names the field and the limit; ALREADY_EXISTS if there is a report of that name.
  absl::StatusOr<ReportInfo> Create(const ReportInfo& info) const;
  /// The report with those of `metrics` that exist. One read of a row, of the columns that this takes.
  absl::StatusOr<ReportInfo> Get(std::string_view report, std::span<const std::string> metrics) const;
  /// OK if there still is the report that `info` was read of. NOT_FOUND if there is none of that name any
  /// more, FAILED_PRECONDITION if it is another one: what is written under the ID in `info` would be lost.
  absl::Status CheckCurrent(const ReportInfo& info) const;
  /// The report with all of its metrics.
  absl::StatusOr<ReportInfo> GetAll(std::string_view report) const;
  /// A page of metrics. INVALID_ARGUMENT names the field of the listing and its limit.
  absl::StatusOr<MetricPage> ListMetrics(std::string_view report, const MetricListing& listing) const;
  /// By name, ascending.
  absl::StatusOr<std::vector<std::string>> List() const;
  /// Removes the metadata; the caller has removed the points.
  absl::Status Remove(const ReportInfo& info) const;

  /// Adds metrics, whose IDs are given here. OK for one that exists with that kind; ALREADY_EXISTS for one
  /// that exists with another.
  absl::Status AddMetrics(std::string_view report, std::span<const Metric> metrics) const;
  /// Adds a segment key, which must have a default. ALREADY_EXISTS if there is one of that name;
  /// RESOURCE_EXHAUSTED if there are kMaxSegmentKeys.
  absl::Status AddKey(std::string_view report, const SegmentKey& key) const;
  absl::Status SetRetention(std::string_view report, uint64_t retention_ms) const;
  /// Makes these the roll-ups of the report. One that it has already keeps its ID and all that was made of
  /// it; one that is declared again after it was removed is a new one. The data of a roll-up that is removed
  /// goes with the next MakeRollups (rollup.h). The IDs in `rollups` are not looked at.
  ///
  /// INVALID_ARGUMENT names the field and the limit.
  absl::Status SetRollups(std::string_view report, const std::vector<Rollup>& rollups) const;

  /// The IDs of values of a key, in the order asked; nullopt for those that have none.
  absl::StatusOr<std::vector<std::optional<uint32_t>>> FindValues(std::string_view report, uint32_t key,
                                                                  std::span<const std::string> values) const;
  /// The same, and gives IDs to those that have none. NOT_FOUND if there is no such report, or no such key.
  absl::StatusOr<std::vector<uint32_t>> GiveValues(std::string_view report, uint32_t key,
                                                   std::span<const std::string> values) const;
  /// The values of IDs, in the order asked. DATA_LOSS for an ID that was never given.
  absl::StatusOr<std::vector<std::string>> ValuesOf(std::string_view report, uint32_t key,
                                                    std::span<const uint32_t> ids) const;
  /// All values of a key that is in use, by ID.
  absl::StatusOr<std::vector<std::string>> AllValues(std::string_view report, uint32_t key) const;

 private:
  using Columns = std::map<std::string, std::string>;
  absl::StatusOr<Columns> Read(const std::string& row, std::vector<std::string> columns) const;
  absl::StatusOr<Columns> ReadAll(const std::string& row) const;
  absl::StatusOr<uint32_t> NewReportId() const;
  /// GiveValues of no more values than one put takes.
  absl::StatusOr<std::vector<uint32_t>> GiveFewValues(std::string_view report, uint32_t key,
                                                      std::span<const std::string> values) const;
  /// Writes cells if the counter is still the one that was read; false if somebody else was first.
  absl::StatusOr<bool> PutIfCounter(const std::string& row, const std::string& counter,
                                    const std::optional<std::string>& before, uint64_t after,
                                    const Columns& cells) const;

  KVStore& store_;
  const std::string dataset_;
};

/// INVALID_ARGUMENT unless it is a name of a report, metric or segment key: valid UTF-8 without control
/// characters, from 1 to `max` bytes.
absl::Status CheckName(std::string_view field, std::string_view name, size_t max);
/// INVALID_ARGUMENT for a retention that is longer than the times that points can have.
absl::Status CheckRetention(uint64_t retention_ms);

}  // namespace kvstore::reports
