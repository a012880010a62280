#include "reports/rollup.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "reports/rollup_cell.h"
#include "reports/rollup_parts.h"
#include "reports/rollup_rows.h"
#include "reports/row_cells.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

/// All roll-ups of a row are one put.
constexpr size_t kMaxBytesOfRow = size_t{6} << 20;

/// The state of a row's roll-ups, as far as it can be read.
struct Made {
  std::optional<std::string> bytes;    // as they are stored
  std::optional<MadeRollups> content;  // none if there is nothing, or nothing that decodes
};

Made MadeOf(const Cells& cells) {
  Made made;
  const auto found = cells.find(kMadeColumn);
  if (found == cells.end()) return made;
  made.bytes = found->second.value;
  auto content = DecodeMade(*made.bytes);
  // A damaged cell counts as none, and the roll-ups are made again: the points have all that they had.
  if (content.ok()) made.content = *std::move(content);
  return made;
}

/// Makes the roll-ups of the rows of one report.
class RollupMaker {
 public:
  RollupMaker(const Metadata& metadata, const ReportInfo& info, const RollupOptions& options)
      : metadata_(metadata), info_(info), options_(options), now_ms_(WallClockMs()) {}

  absl::Status TakeRows(std::span<const ListedRow> rows) {
    std::vector<CellsWanted> wanted;
    for (const ListedRow& row : rows) wanted.push_back({EncodeRollupKey(row.key), {kMadeColumn}});
    KV_ASSIGN_OR_RETURN(const auto cells, ReadCells(metadata_.store(), metadata_.dataset(), wanted));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!cells[i].ok()) return cells[i].status();
      KV_RETURN_IF_ERROR(TakeRow(rows[i], MadeOf(*cells[i])));
      if (options_.pause) KV_RETURN_IF_ERROR(options_.pause());
    }
    return absl::OkStatus();
  }

  const RollupResult& result() const { return result_; }

 private:
  bool IsDeclared(uint32_t id) const {
    return std::any_of(info_.rollups.begin(), info_.rollups.end(),
                       [&](const Rollup& rollup) { return rollup.id == id; });
  }

  /// Whether all that is declared was made of this version of the row, and nothing else is there.
  bool IsCurrent(const Made& made, const RowVersion& version) const {
    if (!made.content || made.content->made_of != version) return false;
    const auto& rollups = made.content->rollups;
    return rollups.size() == info_.rollups.size() &&
           std::all_of(rollups.begin(), rollups.end(),
                       [&](const auto& one) { return IsDeclared(one.first); });
  }

  bool IsExpired(const RowKey& key) const {
    const ReportSettings& settings = info_.settings;
    return settings.retention_ms != 0 &&
           (key.period_start_s + settings.period_s) * 1000 + settings.retention_ms <= now_ms_;
  }

  absl::Status TakeRow(const ListedRow& listed, const Made& made) {
    KV_RETURN_IF_ERROR(CheckCall());
    ++result_.rows;
    if (IsCurrent(made, listed.version)) {
      ++result_.rows_current;
      return absl::OkStatus();
    }
    const bool noisy = options_.quiet_ms > 0 && listed.version.timestamp + options_.quiet_ms > now_ms_;
    if (noisy || IsExpired(listed.key)) return absl::OkStatus();
    KV_ASSIGN_OR_RETURN(const std::optional<StoredRow> row, ReadWhole(listed.key));
    if (!row) return absl::OkStatus();
    return MakeRow(*row, made);
  }

  /// The row as it was at one moment; nullopt if it changed while it was read: what is made of it must not
  /// have the name of a version that it is not.
  absl::StatusOr<std::optional<StoredRow>> ReadWhole(const RowKey& key) const {
    KV_ASSIGN_OR_RETURN(const RowState before, ReadRowState(metadata_.store(), metadata_.dataset(), key));
    if (!before.version) return std::nullopt;
    KV_ASSIGN_OR_RETURN(StoredRow row, ReadStoredRow(metadata_.store(), metadata_.dataset(), key));
    if (RowState::Of(row) != before || row.chunks.empty()) return std::nullopt;
    return row;
  }

  absl::Status MakeRow(const StoredRow& row, const Made& made) {
    KV_ASSIGN_OR_RETURN(const std::vector<LiveChunk> live, LiveChunks(row));
    size_t bytes_of_points = 0;
    for (const LiveChunk& chunk : live) bytes_of_points += chunk.chunk.stored_bytes();
    MadeRollups next{.made_of = *row.version};
    std::vector<std::pair<std::string, std::string>> cells;  // columns and their values
    size_t bytes = 0;
    for (const Rollup& rollup : info_.rollups) {
      // One that is there already need not be made again for the sake of another that was declared since.
      if (made.content && made.content->made_of == next.made_of) {
        const auto there = made.content->rollups.find(rollup.id);
        if (there != made.content->rollups.end()) {
          next.rollups.insert(*there);
          continue;
        }
      }
      KV_ASSIGN_OR_RETURN(const auto chunks, RollUp(info_, row.key, live, rollup));
      next.rollups[rollup.id] =
          chunks && Keep(rollup.id, *chunks, next.made_of, bytes_of_points, bytes, cells);
    }
    cells.emplace_back(kMadeColumn, EncodeMade(next));
    // As long as `made` has them, whoever comes after a crash removes them.
    KV_RETURN_IF_ERROR(RemoveOld(row.key, made, next));
    KV_ASSIGN_OR_RETURN(const bool done, Put(row.key, made, cells));
    // Somebody else makes them, too; what is missing then is made the next time.
    if (!done) return absl::OkStatus();
    ++result_.rows_written;
    for (const auto& [column, value] : cells) result_.bytes_written += column.size() + value.size();
    return absl::OkStatus();
  }

  /// Appends the cells of a roll-up to the others, of which there are `bytes`; false if there is no room for
  /// it, or no query would read less.
  bool Keep(uint32_t id, const RollupChunks& chunks, const RowVersion& made_of, size_t bytes_of_points,
            size_t& bytes, std::vector<std::pair<std::string, std::string>>& cells) const {
    std::vector<std::pair<std::string, std::string>> more;
    size_t size = 0;
    size_t counts = 0;  // which every function of values needs beside its own part
    size_t greatest = 0;
    for (const auto& [part, of_part] : chunks) {
      std::string cell = EncodeRollupCell(made_of, of_part);
      if (cell.size() > kMaxValueBytes) return false;
      size += cell.size();
      if (part == RollupPart::kCount) {
        counts = cell.size();
      } else {
        greatest = std::max(greatest, cell.size());
      }
      more.emplace_back(RollupColumn(id, part), std::move(cell));
    }
    if (bytes + size > kMaxBytesOfRow) return false;
    if (!options_.keep_all && counts + greatest >= bytes_of_points) return false;
    bytes += size;
    std::move(more.begin(), more.end(), std::back_inserter(cells));
    return true;
  }

  /// False if somebody else has written the row's roll-ups since they were read.
  absl::StatusOr<bool> Put(const RowKey& key, const Made& made,
                           const std::vector<std::pair<std::string, std::string>>& cells) const {
    std::vector<CellWrite> writes;
    for (const auto& [column, value] : cells) writes.push_back({column, value, std::nullopt});
    WriteOptions unchanged{.condition = Condition{.column = kMadeColumn}};
    if (made.bytes) unchanged.condition->equals = *made.bytes;
    const auto put = metadata_.store().PutRow(metadata_.dataset(), EncodeRollupKey(key), writes, unchanged);
    if (put.ok()) return true;
    if (absl::IsAlreadyExists(put.status()) || absl::IsFailedPrecondition(put.status())) return false;
    return put.status();
  }

  /// Removes the cells of roll-ups that were kept before, and are not to be any more.
  absl::Status RemoveOld(const RowKey& key, const Made& made, const MadeRollups& next) const {
    if (!made.content) return absl::OkStatus();
    std::vector<std::string> columns;
    for (const auto& [id, kept] : made.content->rollups) {
      const auto still = next.rollups.find(id);
      if (!kept || (still != next.rollups.end() && still->second)) continue;
      for (const RollupPart part : kRollupParts) columns.push_back(RollupColumn(id, part));
    }
    if (columns.empty()) return absl::OkStatus();
    return metadata_.store().DeleteRow(metadata_.dataset(), EncodeRollupKey(key),
                                       {.columns = std::move(columns)});
  }

  const Metadata& metadata_;
  const ReportInfo& info_;
  const RollupOptions& options_;
  const uint64_t now_ms_;
  RollupResult result_;
};

}  // namespace

absl::StatusOr<RollupResult> MakeRollups(const Metadata& metadata, const std::string& report,
                                         const RollupOptions& options) {
  KV_ASSIGN_OR_RETURN(const ReportInfo info, metadata.Get(report, {}));
  if (info.rollups.empty()) {
    KV_RETURN_IF_ERROR(RemoveRollups(metadata, info.settings, UINT64_MAX));
    return RollupResult{};
  }
  RollupMaker maker(metadata, info, options);
  for (uint32_t salt = 0; salt < info.settings.salts; ++salt) {
    KV_RETURN_IF_ERROR(ListRows(metadata.store(), metadata.dataset(),
                                ReportRange(static_cast<uint8_t>(salt), info.settings.id),
                                [&](std::span<const ListedRow> rows) { return maker.TakeRows(rows); }));
  }
  // A report that was dropped meanwhile must leave no roll-ups behind.
  const auto still = metadata.Get(report, {});
  const bool gone = still.ok() ? still->settings.id != info.settings.id : absl::IsNotFound(still.status());
  if (gone) KV_RETURN_IF_ERROR(RemoveRollups(metadata, info.settings, UINT64_MAX));
  return maker.result();
}

}  // namespace kvstore::reports
