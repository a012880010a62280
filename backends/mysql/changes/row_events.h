#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/driver/tables.h"

/// The events of MariaDB's binary log, as far as the change stream must understand them: which units the rows
/// of an event belong to. Only the columns of primary keys are decoded; the others are passed over. The bytes
/// may be anything: what does not decode is DATA_LOSS.
namespace kvstore::mysql {

/// Types of events, as MariaDB numbers them.
enum class EventType : uint8_t {
  kQuery = 2,
  kRotate = 4,
  kFormat = 15,
  kXid = 16,
  kExecuteLoad = 18,  ///< LOAD DATA that was logged as a statement.
  kTableMap = 19,
  kOldWriteRows = 20,
  kOldDeleteRows = 22,
  kWriteRows = 23,
  kUpdateRows = 24,
  kDeleteRows = 25,
  kIncident = 26,
  kHeartbeat = 27,
  kXaPrepare = 38,
  kGtid = 162,
  kGtidList = 163,
  kEncryption = 164,
  kFirstCompressed = 165,
  kLastCompressed = 171,
};

/// An event, which points into the bytes that it was decoded from.
struct LogEvent {
  uint32_t seconds = 0;  ///< When its statement began, since 1970, by the server's clock.
  uint8_t type = 0;
  uint32_t server = 0;
  uint32_t end = 0;  ///< The offset in the log's file after it; 0 if it is not in the file.
  uint16_t flags = 0;
  /// The bytes after its header. Where events have checksums (HasChecksums), the reader of the log takes them
  /// off.
  std::string_view body;

  bool Is(EventType other) const { return type == static_cast<uint8_t>(other); }
};

/// Decodes the header of an event. DATA_LOSS unless `bytes` are one whole event.
absl::StatusOr<LogEvent> DecodeEvent(std::string_view bytes);

/// Whether the events after an event kFormat have checksums: their last kChecksumBytes.
absl::StatusOr<bool> HasChecksums(const LogEvent& event);
inline constexpr size_t kChecksumBytes = 4;

/// A transaction's name.
struct LogGtid {
  uint32_t domain = 0;
  uint32_t server = 0;
  uint64_t sequence = 0;
  friend bool operator==(const LogGtid&, const LogGtid&) = default;
};

/// Decodes an event kGtid.
///
/// standalone  Set to whether the transaction is one statement, without a commit after it.
absl::StatusOr<LogGtid> DecodeGtid(const LogEvent& event, bool& standalone);
/// Decodes an event kGtidList: the last transaction of each domain and server before the log's file.
absl::StatusOr<std::vector<LogGtid>> DecodeGtidList(const LogEvent& event);
/// Returns the file that an event kRotate names.
absl::StatusOr<std::string> DecodeRotate(const LogEvent& event, uint64_t& offset);
/// A statement in the log.
struct LoggedStatement {
  std::string database;  ///< The one that names without a database mean; empty: there is none.
  std::string text;
};
/// Decodes an event kQuery or kExecuteLoad.
absl::StatusOr<LoggedStatement> DecodeQuery(const LogEvent& event);

/// Which units a table has, by its columns.
enum class TableForm : uint8_t { kOther, kRows, kObjects, kMappings };

/// A table, as the rows events after its event kTableMap name it.
struct LoggedTable {
  uint64_t number = 0;  ///< By which rows events name it.
  std::string database;
  std::string name;
  std::string types;               ///< A byte for each column.
  std::vector<uint16_t> metadata;  ///< One for each column.

  /// Returns the shard that the table is on; nullopt if its database is none of a shard.
  std::optional<uint32_t> Shard(ShardSpace space) const;
  TableForm Form() const;
};
/// Decodes an event kTableMap.
absl::StatusOr<LoggedTable> DecodeTableMap(const LogEvent& event);
/// Returns the number of the table of an event kWriteRows, kUpdateRows or kDeleteRows.
absl::StatusOr<uint64_t> TableOfRows(const LogEvent& event);

/// A row that was written or deleted, by its primary key. Rows have row and column, objects the local ID,
/// mappings both IDs.
struct TouchedRow {
  std::string row;
  std::string column;
  uint64_t first = 0;
  uint64_t second = 0;
  friend bool operator==(const TouchedRow&, const TouchedRow&) = default;
};
/// Decodes an event kWriteRows, kUpdateRows or kDeleteRows of a table, whose form is not kOther, and appends
/// its rows. An update that changes a key touches two. FAILED_PRECONDITION if the server does not log the
/// keys.
absl::Status DecodeRows(const LogEvent& event, const LoggedTable& table, std::vector<TouchedRow>& rows);

}  // namespace kvstore::mysql
