#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Events of a binary log as MariaDB 10.11 writes them, for tests that need no server.
namespace kvstore::testing {

/// Appends a number, the lowest byte first.
inline void AppendLittle(std::string& out, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
}

/// Returns an event with its header.
inline std::string MadeEvent(uint8_t type, std::string_view body, uint32_t end = 0, uint32_t server = 1) {
  std::string event;
  AppendLittle(event, 1'700'000'000, 4);
  AppendLittle(event, type, 1);
  AppendLittle(event, server, 4);
  AppendLittle(event, 19 + body.size(), 4);
  AppendLittle(event, end, 4);
  AppendLittle(event, 0, 2);
  event += body;
  return event;
}

inline std::string MadeGtid(uint32_t domain, uint64_t sequence, bool standalone = false, uint32_t end = 0) {
  std::string body;
  AppendLittle(body, sequence, 8);
  AppendLittle(body, domain, 4);
  AppendLittle(body, standalone ? 1 : 0, 1);
  AppendLittle(body, 0, 6);
  return MadeEvent(162, body, end);
}

inline std::string MadeXid(uint32_t end = 0) { return MadeEvent(16, std::string(8, '\0'), end); }

inline std::string MadeQuery(std::string_view database, std::string_view text) {
  std::string body;
  AppendLittle(body, 1, 4);
  AppendLittle(body, 0, 4);
  AppendLittle(body, database.size(), 1);
  AppendLittle(body, 0, 2);
  AppendLittle(body, 0, 2);
  body.append(database).append(1, '\0').append(text);
  return MadeEvent(2, body);
}

inline std::string MadeTableMap(uint64_t number, std::string_view database, std::string_view table,
                                std::string_view types, std::string_view metadata) {
  std::string body;
  AppendLittle(body, number, 6);
  AppendLittle(body, 1, 2);
  AppendLittle(body, database.size(), 1);
  body.append(database).append(1, '\0');
  AppendLittle(body, table.size(), 1);
  body.append(table).append(1, '\0');
  AppendLittle(body, types.size(), 1);
  body += types;
  AppendLittle(body, metadata.size(), 1);
  body += metadata;
  body.append((types.size() + 7) / 8, '\0');
  return MadeEvent(19, body);
}

/// The columns of the tables of sql/.
inline std::string MadeRowsTable(uint64_t number, std::string_view database, std::string_view table) {
  return MadeTableMap(number, database, table, "\x0f\x0f\x08\xfc",
                      std::string_view("\x00\x04\x00\x04\x04", 5));
}
inline std::string MadeObjectsTable(uint64_t number, std::string_view database, std::string_view table) {
  return MadeTableMap(number, database, table, "\x08\xfc\x08\xfe", "\x03\xfe\x10");
}

/// A row of a dataset of rows, with all of its columns.
inline std::string MadeCell(std::string_view row, std::string_view column, uint64_t timestamp,
                            std::string_view value) {
  std::string image(1, '\0');
  AppendLittle(image, row.size(), 2);
  image += row;
  AppendLittle(image, column.size(), 2);
  image += column;
  AppendLittle(image, timestamp, 8);
  AppendLittle(image, value.size(), 4);
  image += value;
  return image;
}

/// type  23: written, 24: updated (`images` has two for each row), 25: deleted.
inline std::string MadeRows(uint8_t type, uint64_t number, uint8_t columns, const std::string& images,
                            uint32_t end = 0) {
  std::string body;
  AppendLittle(body, number, 6);
  AppendLittle(body, 1, 2);
  AppendLittle(body, columns, 1);
  const auto all = static_cast<uint8_t>((1u << columns) - 1);
  AppendLittle(body, all, 1);
  if (type == 24) AppendLittle(body, all, 1);
  body += images;
  return MadeEvent(type, body, end);
}

}  // namespace kvstore::testing
