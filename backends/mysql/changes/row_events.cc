#include "backends/mysql/changes/row_events.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace kvstore::mysql {
namespace {

// The header of an event: time, type, server, size, position of the next one, flags.
constexpr size_t kEventHeaderBytes = 19;
/// In the flags of an event kGtid: no commit follows.
constexpr uint8_t kStandaloneFlag = 1;
/// The bytes that an event kExecuteLoad has in addition, after those of kQueryHeaderBytes.
constexpr size_t kLoadHeaderBytes = 4 + 4 + 4 + 1;
/// The bytes of an event kQuery before the status, the database and the text.
constexpr size_t kQueryHeaderBytes = 13;

// Types of columns, as the protocol numbers them.
constexpr uint8_t kLongLong = 8;
constexpr uint8_t kVarchar = 15;
constexpr uint8_t kBlob = 252;
constexpr uint8_t kFixedString = 254;
/// Lengths of strings of more bytes than this have two bytes.
constexpr uint16_t kMaxShortString = 255;
/// No table of ours has as many columns.
constexpr uint64_t kMaxColumns = 4096;

/// Takes values off the beginning of some bytes. Once something is not there, all that follows is not.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return bytes_.empty(); }
  std::string_view rest() const { return bytes_; }

  std::string_view Bytes(uint64_t count) {
    if (!ok_ || count > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  /// A number of so many bytes, the lowest first.
  uint64_t Uint(size_t size) {
    const std::string_view taken = Bytes(size);
    uint64_t value = 0;
    for (size_t i = taken.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(taken[i - 1]);
    return value;
  }
  /// A number in the protocol's form of one to nine bytes.
  uint64_t Packed() {
    const uint64_t first = Uint(1);
    if (first < 251) return first;
    if (first == 252) return Uint(2);
    if (first == 253) return Uint(3);
    if (first == 254) return Uint(8);
    ok_ = false;
    return 0;
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

absl::Status Malformed(std::string_view what) {
  return absl::DataLossError(fmt::format("the binary log has a malformed event: {}", what));
}

bool BitOf(std::string_view bitmap, size_t bit) {
  return (static_cast<unsigned char>(bitmap[bit / 8]) >> (bit % 8) & 1) != 0;
}

size_t BitmapBytes(uint64_t bits) { return (bits + 7) / 8; }

/// How many bytes a column of a type has in the metadata of a table.
std::optional<size_t> MetadataBytes(uint8_t type) {
  switch (type) {
    case 4:    // FLOAT
    case 5:    // DOUBLE
    case 17:   // TIMESTAMP2
    case 18:   // DATETIME2
    case 19:   // TIME2
    case 249:  // TINY_BLOB
    case 250:  // MEDIUM_BLOB
    case 251:  // LONG_BLOB
    case kBlob:
    case 255:  // GEOMETRY
      return 1;
    case kVarchar:
    case 16:   // BIT
    case 246:  // NEWDECIMAL
    case 247:  // ENUM
    case 248:  // SET
    case 253:  // VAR_STRING
    case kFixedString:
      return 2;
    case 140:  // a compressed column of MariaDB
    case 141:
      return std::nullopt;
    default:
      return 0;
  }
}

/// Takes the value of a column. Only types that our tables have can be passed over.
std::string_view TakeValue(Taker& taker, uint8_t type, uint16_t metadata, bool& known) {
  switch (type) {
    case kLongLong:
      return taker.Bytes(8);
    case kVarchar:
      return taker.Bytes(taker.Uint(metadata > kMaxShortString ? 2 : 1));
    case kBlob:
      known = known && metadata >= 1 && metadata <= 4;
      return known ? taker.Bytes(taker.Uint(metadata)) : std::string_view();
    case kFixedString: {
      // The low byte is the length; bits 4 and 5 of the high one are more of it, inverted.
      const unsigned high = metadata >> 8;
      const unsigned length = (metadata & 0xFF) | ((high & 0x30) ^ 0x30) << 4;
      return taker.Bytes(taker.Uint(length > kMaxShortString ? 2 : 1));
    }
    default:
      known = false;
      return {};
  }
}

/// Decodes one image of a row.
///
/// has_key  Set to whether the image has all columns of the key.
absl::Status TakeRow(Taker& taker, std::string_view present, uint64_t present_count, const LoggedTable& table,
                     TouchedRow& row, bool& has_key) {
  const std::string_view nulls = taker.Bytes(BitmapBytes(present_count));
  if (!taker.ok()) return Malformed("a row is cut off");
  const TableForm form = table.Form();
  const size_t key_columns = form == TableForm::kObjects ? 1 : 2;
  size_t keys = 0;
  size_t place = 0;  // among those that are present
  bool known = true;
  for (size_t column = 0; column < table.types.size(); ++column) {
    if (!BitOf(present, column)) continue;
    if (BitOf(nulls, place++)) continue;
    const std::string_view value =
        TakeValue(taker, static_cast<uint8_t>(table.types[column]), table.metadata[column], known);
    if (!known)
      return Malformed(fmt::format("column {} of `{}`.`{}` has an unexpected type", column + 1,
                                   table.database, table.name));
    if (!taker.ok()) return Malformed("a row is cut off");
    if (column >= key_columns) continue;
    ++keys;
    if (form == TableForm::kRows) {
      (column == 0 ? row.row : row.column) = std::string(value);
    } else {
      (column == 0 ? row.first : row.second) = Taker(value).Uint(8);
    }
  }
  has_key = keys == key_columns;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LogEvent> DecodeEvent(std::string_view bytes) {
  Taker taker(bytes);
  LogEvent event;
  event.seconds = static_cast<uint32_t>(taker.Uint(4));
  event.type = static_cast<uint8_t>(taker.Uint(1));
  event.server = static_cast<uint32_t>(taker.Uint(4));
  const uint64_t size = taker.Uint(4);
  event.end = static_cast<uint32_t>(taker.Uint(4));
  event.flags = static_cast<uint16_t>(taker.Uint(2));
  if (!taker.ok() || size != bytes.size()) return Malformed("its size is wrong");
  event.body = bytes.substr(kEventHeaderBytes);
  return event;
}

absl::StatusOr<bool> HasChecksums(const LogEvent& event) {
  // The kind of checksum stands before the event's own one, which is always there.
  if (event.body.size() <= kChecksumBytes) return Malformed("the format of the log is cut off");
  const char kind = event.body[event.body.size() - kChecksumBytes - 1];
  if (kind != 0 && kind != 1) return Malformed("its checksums are of an unknown kind");
  return kind == 1;
}

absl::StatusOr<LogGtid> DecodeGtid(const LogEvent& event, bool& standalone) {
  Taker taker(event.body);
  LogGtid gtid{.server = event.server};
  gtid.sequence = taker.Uint(8);
  gtid.domain = static_cast<uint32_t>(taker.Uint(4));
  standalone = (taker.Uint(1) & kStandaloneFlag) != 0;
  if (!taker.ok()) return Malformed("a transaction's name is cut off");
  return gtid;
}

absl::StatusOr<std::vector<LogGtid>> DecodeGtidList(const LogEvent& event) {
  Taker taker(event.body);
  // The upper bits are flags.
  const uint64_t count = taker.Uint(4) & 0x0FFFFFFF;
  std::vector<LogGtid> list;
  for (uint64_t i = 0; i < count && taker.ok(); ++i) {
    LogGtid gtid;
    gtid.domain = static_cast<uint32_t>(taker.Uint(4));
    gtid.server = static_cast<uint32_t>(taker.Uint(4));
    gtid.sequence = taker.Uint(8);
    list.push_back(gtid);
  }
  if (!taker.ok()) return Malformed("a list of transactions is cut off");
  return list;
}

absl::StatusOr<std::string> DecodeRotate(const LogEvent& event, uint64_t& offset) {
  Taker taker(event.body);
  offset = taker.Uint(8);
  if (!taker.ok()) return Malformed("the name of a file is cut off");
  std::string_view name = taker.rest();
  while (!name.empty() && name.back() == '\0') name.remove_suffix(1);
  return std::string(name);
}

absl::StatusOr<LoggedStatement> DecodeQuery(const LogEvent& event) {
  Taker taker(event.body);
  taker.Bytes(8);  // thread, duration
  const uint64_t database = taker.Uint(1);
  taker.Bytes(2);  // error
  const uint64_t status = taker.Uint(2);
  static_assert(kQueryHeaderBytes == 8 + 1 + 2 + 2);
  // The number of the loaded file, and the place of its name in the text.
  if (event.Is(EventType::kExecuteLoad)) taker.Bytes(kLoadHeaderBytes);
  taker.Bytes(status);
  LoggedStatement statement{.database = std::string(taker.Bytes(database)), .text = {}};
  taker.Bytes(1);
  if (!taker.ok()) return Malformed("a statement is cut off");
  statement.text = std::string(taker.rest());
  return statement;
}

std::optional<uint32_t> LoggedTable::Shard(ShardSpace space) const {
  const std::string_view prefix = ShardSpaceName(space);
  if (!database.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = std::string_view(database).substr(prefix.size());
  uint32_t shard = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), shard);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (DatabaseName(space, shard) != database) return std::nullopt;
  return shard;
}

TableForm LoggedTable::Form() const {
  const auto type = [this](size_t column) { return static_cast<uint8_t>(types[column]); };
  if (types.size() == 4 && type(0) == kVarchar && type(1) == kVarchar && type(2) == kLongLong &&
      type(3) == kBlob) {
    return TableForm::kRows;
  }
  if (types.size() == 4 && type(0) == kLongLong && type(1) == kBlob && type(2) == kLongLong &&
      type(3) == kFixedString) {
    return TableForm::kObjects;
  }
  if (types.size() == 3 && type(0) == kLongLong && type(1) == kLongLong && type(2) == kLongLong) {
    return TableForm::kMappings;
  }
  return TableForm::kOther;
}

absl::StatusOr<LoggedTable> DecodeTableMap(const LogEvent& event) {
  Taker taker(event.body);
  LoggedTable table;
  table.number = taker.Uint(6);
  taker.Bytes(2);  // flags
  table.database = std::string(taker.Bytes(taker.Uint(1)));
  taker.Bytes(1);
  table.name = std::string(taker.Bytes(taker.Uint(1)));
  taker.Bytes(1);
  const uint64_t columns = taker.Packed();
  if (!taker.ok() || columns > kMaxColumns) return Malformed("a table is cut off");
  table.types = std::string(taker.Bytes(columns));
  Taker metadata(taker.Bytes(taker.Packed()));
  taker.Bytes(BitmapBytes(columns));  // which may be NULL
  if (!taker.ok()) return Malformed("a table is cut off");
  table.metadata.resize(columns);
  for (size_t i = 0; i < columns; ++i) {
    const auto type = static_cast<uint8_t>(table.types[i]);
    const auto size = MetadataBytes(type);
    // Such a table is none of ours.
    if (!size) break;
    const uint64_t value = metadata.Uint(*size);
    // The types of strings have their bytes the other way round.
    table.metadata[i] = type == kFixedString ? static_cast<uint16_t>((value & 0xFF) << 8 | value >> 8)
                                             : static_cast<uint16_t>(value);
    if (!metadata.ok()) return Malformed("a table is cut off");
  }
  return table;
}

absl::StatusOr<uint64_t> TableOfRows(const LogEvent& event) {
  Taker taker(event.body);
  const uint64_t number = taker.Uint(6);
  if (!taker.ok()) return Malformed("rows are cut off");
  return number;
}

absl::Status DecodeRows(const LogEvent& event, const LoggedTable& table, std::vector<TouchedRow>& rows) {
  Taker taker(event.body);
  taker.Bytes(6 + 2);  // table, flags
  const uint64_t columns = taker.Packed();
  if (!taker.ok() || columns != table.types.size()) return Malformed("rows do not fit their table");
  const auto count = [&](std::string_view bitmap) {
    uint64_t set = 0;
    for (size_t i = 0; i < columns && taker.ok(); ++i) set += BitOf(bitmap, i) ? 1 : 0;
    return set;
  };
  const bool update = event.Is(EventType::kUpdateRows);
  const std::string_view present = taker.Bytes(BitmapBytes(columns));
  const std::string_view after = update ? taker.Bytes(BitmapBytes(columns)) : std::string_view();
  if (!taker.ok()) return Malformed("rows are cut off");
  const uint64_t present_count = count(present);
  const uint64_t after_count = update ? count(after) : 0;
  // Each row has a byte at least, so this ends.
  if (present_count == 0) return Malformed("rows have no columns");
  while (!taker.empty()) {
    TouchedRow row;
    bool has_key = false;
    if (auto status = TakeRow(taker, present, present_count, table, row, has_key); !status.ok())
      return status;
    if (!has_key) {
      return absl::FailedPreconditionError(fmt::format(
          "binlog_row_image: the binary log has no primary keys of rows of `{}`.`{}`; set it to FULL "
          "or MINIMAL",
          table.database, table.name));
    }
    if (update) {
      TouchedRow now = row;
      if (auto status = TakeRow(taker, after, after_count, table, now, has_key); !status.ok()) return status;
      const bool changed = now != row;
      rows.push_back(std::move(row));
      if (changed) rows.push_back(std::move(now));
    } else {
      rows.push_back(std::move(row));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
