#include "backends/mysql/changes/page_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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

bool IsOfWord(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '-';
}

/// Calls `found` with each word of a statement, be it a name, a keyword or a part of a value, until that
/// returns true; returns whether it has.
bool AnyWord(std::string_view statement, const std::function<bool(std::string_view)>& found) {
  for (size_t at = 0; at < statement.size();) {
    size_t end = at;
    while (end < statement.size() && IsOfWord(statement[end])) ++end;
    if (end > at && found(statement.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

bool HasWord(std::string_view statement, std::string_view word) {
  return AnyWord(statement, [&](std::string_view other) {
    return absl::EqualsIgnoreCase({other.data(), other.size()}, {word.data(), word.size()});
  });
}

/// Whether a statement may be about a dataset's tables: it has their name as a word, and names the database
/// of a shard, or is in one. "hairpins" is not about "pins", nor is a table of that name in another database.
bool Names(const DatasetTables& tables, const LoggedStatement& statement) {
  const auto is_shard = [&](std::string_view database) {
    // "mod00017_moved" has what a move has put away.
    constexpr std::string_view kMoved = "_moved";
    if (database.ends_with(kMoved)) database.remove_suffix(kMoved.size());
    LoggedTable table;
    table.database = std::string(database);
    return table.Shard(tables.space).has_value();
  };
  const auto is_table = [&](std::string_view word) { return word.substr(0, word.find('$')) == tables.name; };
  const bool has_name = AnyWord(statement.text, is_table) || Contains(statement.text, Quote(tables.name));
  return has_name && (is_shard(statement.database) || AnyWord(statement.text, is_shard));
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

absl::Status PageBuilder::Check(const LoggedStatement& logged, bool standalone) const {
  const std::string_view statement = logged.text;
  if (const size_t at = statement.find(kCopyMark); at != std::string_view::npos && standalone) {
    uint32_t domain = 0;
    const std::string_view number = statement.substr(at + kCopyMark.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), domain);
    const bool is_ours = Contains(statement, tables_.space == ShardSpace::kMod ? "`mod" : "`db");
    const bool is_told = place_.at_ms + kMaxSkewMs < tables_.whole_ms;
    if (error == std::errc() && is_ours && !is_told && !tables_.domains.contains(domain)) {
      return absl::OutOfRangeError(
          fmt::format("from: shards were moved since from a pair of servers (gtid_domain_id {}) that this "
                      "token does not know; begin again with --snapshot",
                      domain));
    }
  }
  if (!Names(tables_, logged)) return absl::OkStatus();
  if (!standalone) {
    return absl::FailedPreconditionError(
        fmt::format("binlog_format: a write to '{}' was logged as a statement, which does not say what it "
                    "has changed; set binlog_format to ROW at the server, and begin again with --snapshot",
                    tables_.name));
  }
  const bool migrated = Contains(statement, Quote(tables_.name + "$away")) ||
                        Contains(statement, Quote(tables_.name + "$r$away"));
  const bool truncated = HasWord(statement, "truncate");
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
  // A follower that goes on after the last unit need not read the transaction again.
  if (has_last_ && gtid == gtid_) units_.back().after = place_;
  has_last_ = false;
  seen_ = 0;
}

}  // namespace kvstore::mysql
