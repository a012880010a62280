#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Events of a binary log, made up for tests: their headers are as MariaDB writes them, their contents are
/// not.
namespace kvstore::testing {

inline void AppendLittleEndian(std::string& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
}

inline std::string MadeEvent(uint8_t type, uint32_t seconds, uint32_t server, std::string_view body,
                             uint16_t flags = 0) {
  std::string event;
  AppendLittleEndian(event, seconds, 4);
  AppendLittleEndian(event, type, 1);
  AppendLittleEndian(event, server, 4);
  AppendLittleEndian(event, 19 + body.size(), 4);
  AppendLittleEndian(event, 0, 4);
  AppendLittleEndian(event, flags, 2);
  return event.append(body);
}

inline std::string MadeFormat(std::string_view version = "10.11") { return MadeEvent(15, 1, 1, version); }

/// A transaction of one statement.
inline std::string MadeTransaction(uint32_t domain, uint32_t server, uint64_t sequence, uint32_t seconds,
                                   std::string_view statement) {
  std::string gtid;
  AppendLittleEndian(gtid, sequence, 8);
  AppendLittleEndian(gtid, domain, 4);
  AppendLittleEndian(gtid, 0, 7);
  constexpr uint8_t kGtid = 162;
  constexpr uint8_t kQuery = 2;
  constexpr uint8_t kXid = 16;
  return MadeEvent(kGtid, seconds, server, gtid) + MadeEvent(kQuery, seconds, server, statement) +
         MadeEvent(kXid, seconds, server, "12345678");
}

}  // namespace kvstore::testing
