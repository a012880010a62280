#include "reports/rollup_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reports/row_cells.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// Rows of which roll-ups are held in memory together.
constexpr size_t kRowsOfBatch = 32;

/// The parts of a row's roll-up if all of them were made of one version; none if they were not, or are not
/// there.
absl::StatusOr<RollupReader::Parts> PartsOf(const RollupPlan& plan, const Rollup& rollup,
                                            const Cells& cells) {
  RollupReader::Parts parts;
  for (const RollupPart part : plan.parts()) {
    const auto found = cells.find(RollupColumn(rollup.id, part));
    if (found == cells.end()) return RollupReader::Parts{};
    KV_ASSIGN_OR_RETURN(RollupCell cell, DecodeRollupCell(found->second.value));
    if (!parts.empty() && parts.begin()->second.made_of != cell.made_of) return RollupReader::Parts{};
    parts.emplace(part, std::move(cell));
  }
  return parts;
}

class RollupScan {
 public:
  RollupScan(const Metadata& metadata, const RollupPlan& plan, bool partial, const TakeRolledRow& take)
      : metadata_(metadata), plan_(plan), partial_(partial), take_(take) {}

  absl::Status ReadBatch(std::span<const RowKey> rows) {
    std::vector<CellsWanted> wanted;
    for (const RowKey& row : rows) {
      wanted.push_back({EncodeRowKey(row), {kVersionColumn}});
      std::vector<std::string> columns;
      for (const RollupPart part : plan_.parts()) {
        columns.push_back(RollupColumn(plan_.For(row.period_start_s)->id, part));
      }
      wanted.push_back({EncodeRollupKey(row), std::move(columns)});
    }
    auto cells = ReadCells(metadata_.store(), metadata_.dataset(), wanted);
    if (absl::IsUnavailable(cells.status())) {
      result_.left.insert(result_.left.end(), rows.begin(), rows.end());
      return absl::OkStatus();
    }
    if (!cells.ok()) return cells.status();
    for (size_t i = 0; i < rows.size(); ++i) {
      KV_RETURN_IF_ERROR(TakeRow(rows[i], (*cells)[2 * i], (*cells)[2 * i + 1]));
    }
    return absl::OkStatus();
  }

  RollupScanResult Take() && { return std::move(result_); }

 private:
  absl::Status TakeRow(const RowKey& key, absl::StatusOr<Cells>& points,
                       const absl::StatusOr<Cells>& rollups) {
    CountBytes(points);
    CountBytes(rollups);
    std::optional<RowVersion> version;
    RolledRow row{.key = key, .rollup = plan_.For(key.period_start_s)};
    if (points.ok()) {
      const auto found = points->find(kVersionColumn);
      // The row has no points.
      if (found == points->end()) return absl::OkStatus();
      KV_ASSIGN_OR_RETURN(version, VersionOf(key, std::move(found->second)));
    } else if (partial_ && absl::IsUnavailable(points.status())) {
      row.unchecked = points.status();
    }
    if ((version || row.unchecked) && rollups.ok()) {
      auto parts = PartsOf(plan_, *row.rollup, *rollups);
      if (!parts.ok()) return Named(row, parts.status());
      row.parts = *std::move(parts);
      if (!row.parts.empty() && (row.unchecked || row.parts.begin()->second.made_of == *version)) {
        return Named(row, take_(row));
      }
    }
    result_.left.push_back(key);
    return absl::OkStatus();
  }

  void CountBytes(const absl::StatusOr<Cells>& cells) {
    if (!cells.ok()) return;
    for (const auto& [column, cell] : *cells) result_.bytes += cell.value.size();
  }

  /// Damage with the name of what is damaged, and what to do about it.
  static absl::Status Named(const RolledRow& row, const absl::Status& status) {
    if (!absl::IsDataLoss(status)) return status;
    return absl::DataLossError(fmt::format(
        "{}, roll-up {}: {}; its points are not concerned: remove the roll-up and declare it again",
        RowText(row.key), row.rollup->id, std::string(status.message())));
  }

  const Metadata& metadata_;
  const RollupPlan& plan_;
  const bool partial_;
  const TakeRolledRow& take_;
  RollupScanResult result_;
};

}  // namespace

absl::StatusOr<RollupScanResult> ReadRollups(const Metadata& metadata, const RollupPlan& plan,
                                             std::span<const RowKey> rows, bool partial,
                                             const TakeRolledRow& take) {
  RollupScan scan(metadata, plan, partial, take);
  while (!rows.empty()) {
    const size_t size = std::min(rows.size(), kRowsOfBatch);
    KV_RETURN_IF_ERROR(scan.ReadBatch(rows.first(size)));
    rows = rows.subspan(size);
  }
  return std::move(scan).Take();
}

}  // namespace kvstore::reports
