#include "backends/mysql/changes/page_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "backend_api/unit_key.h"
#include "backends/mysql/driver/schema.h"
#include "idgen/object_id.h"

namespace kvstore::mysql {
namespace {

TableForm FormOf(Shape shape) {
  switch (shape) {
    case Shape::kRows:
      return TableForm::kRows;
    case Shape::kObjects:
      return TableForm::kObjects;
    case Shape::kMappings:
      return TableForm::kMappings;
  }
  return TableForm::kOther;
}

std::string KeyOf(const DatasetTables& tables, uint32_t shard, const TouchedRow& row) {
  switch (tables.shape) {
    case Shape::kRows:
      return RowUnitKey(row.row, row.column);
    case Shape::kObjects:
      return ObjectUnitKey(ObjectId::ValueOf(shard, tables.type, row.first));
    case Shape::kMappings:
      return MappingUnitKey(row.first, row.second);
  }
  return "";
}

bool Contains(std::string_view text, const std::string& part) {
  return text.find(part) != std::string_view::npos;
}

/// For how long the clocks of servers may differ.
constexpr uint64_t kMaxSkewMs = 60'000;

}  // namespace

void PageBuilder::Begin(const LogGtid& gtid, uint64_t at_ms) {
  gtid_ = gtid;
  seen_ = 0;
  has_last_ = false;
  // A place in the middle of a transaction that the log does not have next belongs to one that was told by
  // another server in another order, and comes later.
  place_.at_ms = std::max(place_.at_ms, at_ms);
}

absl::StatusOr<size_t> PageBuilder::Add(const LoggedTable& table, std::span<const TouchedRow> rows) {
  if (!tables_.Has(table)) return rows.size();
  const TableForm form = table.Form();
  if (form == TableForm::kOther) {
    return absl::DataLossError(
        fmt::format("the binary log has rows of `{}`.`{}` with columns that this program does not know",
                    table.database, table.name));
  }
  // A dataset of another shape, which had the same name and was dropped.
  if (form != FormOf(tables_.shape)) return rows.size();
  const uint32_t shard = *table.Shard(tables_.space);
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool told = place_.part && *place_.part == gtid_ && seen_ < place_.rows;
    if (told) {
      ++seen_;
      continue;
    }
    std::string key = KeyOf(tables_, shard, rows[i]);
    // Cells of a column follow each other.
    const bool same = has_last_ && units_.back().key == key;
    if (!same && full()) return i;
    ++seen_;
    place_.part = gtid_;
    place_.rows = seen_;
    if (same) {
      units_.back().after = place_;
    } else {
      units_.push_back({.key = std::move(key), .at_ms = place_.at_ms, .after = place_});
      has_last_ = true;
    }
  }
  return rows.size();
}

absl::Status PageBuilder::Check(std::string_view statement, bool standalone) const {
  if (const size_t at = statement.find(kCopyMark); at != std::string_view::npos && standalone) {
    uint32_t domain = 0;
    const std::string_view number = statement.substr(at + kCopyMark.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), domain);
    const bool is_ours = Contains(statement, tables_.space == Space::kMod ? "`mod" : "`db");
    const bool is_told = place_.at_ms + kMaxSkewMs < tables_.whole_ms;
    if (error == std::errc() && is_ours && !is_told && !tables_.domains.contains(domain)) {
      return absl::OutOfRangeError(
          fmt::format("from: shards were moved since from a pair of servers (gtid_domain_id {}) that this "
                      "token does not know; "
                      "begin again with --snapshot",
                      domain));
    }
  }
  if (!Contains(statement, tables_.name)) return absl::OkStatus();
  if (!standalone) {
    return absl::FailedPreconditionError(
        fmt::format("binlog_format: a write to '{}' was logged as a statement, which does not say what it "
                    "has changed; set "
                    "binlog_format to ROW at the server, and begin again with --snapshot",
                    tables_.name));
  }
  const bool migrated = Contains(statement, Quote(tables_.name + "$away")) ||
                        Contains(statement, Quote(tables_.name + "$r$away"));
  const bool truncated =
      statement.size() > 8 && (statement.starts_with("TRUNCATE") || statement.starts_with("truncate"));
  if (migrated || truncated) {
    return absl::OutOfRangeError(
        fmt::format("from: the dataset '{}' was {} since; begin again with --snapshot", tables_.name,
                    migrated ? "migrated" : "truncated"));
  }
  return absl::OkStatus();
}

bool PageBuilder::Holds(std::string_view statement) const {
  if (!tables_.awaits_map || !Contains(statement, "RENAME TABLE")) return false;
  // RENAME TABLE `mod00017`.`pins` TO `mod00017_moved`.`pins`, ... (shardops/freeze.cc)
  constexpr std::string_view kTo = " TO `";
  constexpr std::string_view kMoved = "_moved`.";
  const std::string name = Quote(tables_.name);
  for (size_t at = statement.find(kTo); at != std::string_view::npos; at = statement.find(kTo, at + 1)) {
    std::string_view target = statement.substr(at + kTo.size());
    const size_t end = target.find('`');
    if (end == std::string_view::npos) break;
    const size_t moved = target.find(kMoved);
    if (moved == std::string_view::npos || moved > end) continue;
    if (!target.substr(moved + kMoved.size()).starts_with(name)) continue;
    LoggedTable table;
    table.database = std::string(target.substr(0, moved));
    const auto shard = table.Shard(tables_.space);
    if (shard && tables_.awaits_map(*shard)) return true;
  }
  return false;
}

void PageBuilder::Commit(const LogGtid& gtid) {
  place_.done.Add(gtid);
  if (place_.part && *place_.part == gtid) {
    place_.part.reset();
    place_.rows = 0;
  }
  // Who goes on behind the last unit need not read the transaction again.
  if (has_last_ && gtid == gtid_) units_.back().after = place_;
  has_last_ = false;
  seen_ = 0;
}

}  // namespace kvstore::mysql
