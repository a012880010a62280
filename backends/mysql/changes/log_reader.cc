#include "backends/mysql/changes/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace kvstore::mysql {
namespace {

/// The server has made the event up for its reader; it is not in the log.
constexpr uint16_t kArtificialFlag = 0x20;
/// Types of rows events that MySQL writes, and MariaDB does not.
constexpr uint8_t kFirstOfMySql = 30;
constexpr uint8_t kLastOfMySql = 32;
constexpr uint64_t kMsOfSecond = 1000;
constexpr uint64_t kOffsetWrap = uint64_t{1} << 32;

bool StartsWith(std::string_view text, std::string_view upper) {
  if (text.size() < upper.size()) return false;
  for (size_t i = 0; i < upper.size(); ++i) {
    const char c = text[i] >= 'a' && text[i] <= 'z' ? static_cast<char>(text[i] - 'a' + 'A') : text[i];
    if (c != upper[i]) return false;
  }
  return true;
}

}  // namespace

bool FilePlace::IsAtOrBefore(const FilePlace& other) const {
  // "binlog.999999" is followed by "binlog.1000000".
  if (file.size() != other.file.size()) return file.size() < other.file.size();
  if (file != other.file) return file < other.file;
  return offset <= other.offset;
}

LogItem LogReader::Commit() {
  commit_next_ = false;
  open_ = false;
  tables_.clear();
  done_.Add(gtid_);
  return Item(LogItem::Kind::kCommit);
}

LogItem LogReader::Item(LogItem::Kind kind) const {
  return {.kind = kind, .gtid = gtid_, .standalone = standalone_, .at_ms = at_ms_, .end = place_};
}

absl::StatusOr<LogItem> LogReader::Begin(const Begun& begun) {
  gtid_ = begun.gtid;
  standalone_ = begun.standalone;
  open_ = true;
  at_ms_ = begun.at_ms;
  tables_.clear();
  if (done_.Has(gtid_)) {
    // A server that is given a place leaves out what is before it. So this transaction is out of order, and
    // it is not clear what is before a place.
    return absl::OutOfRangeError(
        fmt::format("gtid_strict_mode: the transaction {}-{}-{} comes after a later one of its domain; set "
                    "it to ON at the server",
                    gtid_.domain, gtid_.server, gtid_.sequence));
  }
  return Item(LogItem::Kind::kBegin);
}

absl::StatusOr<LogItem> LogReader::Next() {
  LogItem item;
  for (;;) {
    if (commit_next_) return Commit();
    if (begin_next_) return Begin(*std::exchange(begin_next_, std::nullopt));
    const auto bytes = next_();
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return LogItem{.kind = LogItem::Kind::kEnd, .end = place_};
    auto event = DecodeEvent(*bytes);
    if (!event.ok()) return event.status();
    if (event->end != 0 && (event->flags & kArtificialFlag) == 0) {
      const uint64_t wraps = place_.offset / kOffsetWrap + (event->end < place_.offset % kOffsetWrap ? 1 : 0);
      place_.offset = wraps * kOffsetWrap + event->end;
    }
    const auto found = Take(*event, item);
    if (!found.ok()) return found.status();
    if (*found) return item;
  }
}

absl::StatusOr<bool> LogReader::Take(LogEvent& event, LogItem& item) {
  if (event.Is(EventType::kFormat)) {
    const auto checksums = HasChecksums(event);
    if (!checksums.ok()) return checksums.status();
    checksums_ = *checksums;
    return false;
  }
  if (checksums_) {
    if (event.body.size() < kChecksumBytes)
      return absl::DataLossError("the binary log has an event without checksum");
    event.body.remove_suffix(kChecksumBytes);
  }
  if (event.Is(EventType::kRotate)) {
    uint64_t offset = 0;
    const auto file = DecodeRotate(event, offset);
    if (!file.ok()) return file.status();
    place_ = {.file = *file, .offset = offset};
    return false;
  }
  if (event.Is(EventType::kHeartbeat)) {
    item = Item(LogItem::Kind::kIdle);
    return true;
  }
  if (event.Is(EventType::kIncident)) {
    return absl::OutOfRangeError("the server has lost events of its binary log");
  }
  if (event.Is(EventType::kGtid)) {
    bool standalone = false;
    const auto gtid = DecodeGtid(event, standalone);
    if (!gtid.ok()) return gtid.status();
    const Begun begun{.gtid = *gtid, .standalone = standalone, .at_ms = event.seconds * kMsOfSecond};
    if (open_) {
      // A transaction without an event that ends it.
      begin_next_ = begun;
      item = Commit();
      return true;
    }
    auto begin = Begin(begun);
    if (!begin.ok()) return begin.status();
    item = *std::move(begin);
    return true;
  }
  if (!open_) return false;
  if (event.Is(EventType::kExecuteLoad)) {
    auto statement = DecodeQuery(event);
    if (!statement.ok()) return statement.status();
    item = Item(LogItem::Kind::kStatement);
    item.statement = *std::move(statement);
    return true;
  }
  if (event.Is(EventType::kXaPrepare)) {
    const bool wanted = std::any_of(tables_.begin(), tables_.end(),
                                    [](const auto& table) { return table.second != nullptr; });
    if (!wanted) return false;
    return absl::FailedPreconditionError(
        "XA: a prepared transaction has written to a dataset, and what became of it cannot be followed; "
        "begin again with --snapshot");
  }
  if (event.Is(EventType::kXid)) {
    commit_next_ = true;
    return false;
  }
  if (event.Is(EventType::kQuery)) {
    auto statement = DecodeQuery(event);
    if (!statement.ok()) return statement.status();
    const std::string_view text = statement->text;
    const bool ends = standalone_ || StartsWith(text, "COMMIT") ||
                      (StartsWith(text, "ROLLBACK") && !StartsWith(text, "ROLLBACK TO"));
    commit_next_ = ends;
    const bool says_nothing = (ends && !standalone_) || StartsWith(text, "BEGIN") ||
                              StartsWith(text, "SAVEPOINT") || StartsWith(text, "ROLLBACK TO");
    if (says_nothing) return false;
    item = Item(LogItem::Kind::kStatement);
    item.statement = *std::move(statement);
    return true;
  }
  if (event.Is(EventType::kTableMap)) {
    auto table = DecodeTableMap(event);
    if (!table.ok()) return table.status();
    const uint64_t number = table->number;
    const bool wanted = wants_(*table);
    tables_[number] = wanted ? std::make_shared<const LoggedTable>(*std::move(table)) : nullptr;
    return false;
  }
  return TakeRows(event, item);
}

absl::StatusOr<bool> LogReader::TakeRows(const LogEvent& event, LogItem& item) {
  if (event.type >= static_cast<uint8_t>(EventType::kFirstCompressed) &&
      event.type <= static_cast<uint8_t>(EventType::kLastCompressed)) {
    return absl::FailedPreconditionError(
        "log_bin_compress: is ON, and changes cannot be read from compressed events; set it to OFF at the "
        "server");
  }
  const bool unknown = (event.type >= static_cast<uint8_t>(EventType::kOldWriteRows) &&
                        event.type <= static_cast<uint8_t>(EventType::kOldDeleteRows)) ||
                       (event.type >= kFirstOfMySql && event.type <= kLastOfMySql);
  if (unknown) {
    return absl::FailedPreconditionError(fmt::format(
        "the binary log has rows in events of the type {}, which MariaDB does not write", event.type));
  }
  const bool rows =
      event.Is(EventType::kWriteRows) || event.Is(EventType::kUpdateRows) || event.Is(EventType::kDeleteRows);
  if (!rows) return false;
  const auto number = TableOfRows(event);
  if (!number.ok()) return number.status();
  const auto found = tables_.find(*number);
  if (found == tables_.end()) {
    // The last rows event of a statement may name no table.
    constexpr uint64_t kNoTable = 0xFFFFFF;
    if (*number == kNoTable) return false;
    return absl::DataLossError("the binary log has rows of a table that it does not name");
  }
  if (!found->second) return false;
  item = Item(LogItem::Kind::kRows);
  item.table = found->second;
  if (item.table->Form() == TableForm::kOther) return true;
  if (auto status = DecodeRows(event, *item.table, item.rows); !status.ok()) return status;
  return true;
}

}  // namespace kvstore::mysql
