#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvstore_api/big_endian.h"

/// The stored form of a cell's name. See docs/key-format.md; golden tests pin it.
///
///   key   = enc(row) enc(column) be64(~timestamp)
///   enc   = each 0x00 byte becomes 0x00 0xFF; the end is 0x00 0x01
///
/// enc keeps byte order and no encoding is a prefix of another, so keys sort by row, then column, then newest
/// first under the plain bytewise comparator.
namespace kvstore::rocks {

inline constexpr size_t kTimestampBytes = 8;
/// In the place of the last byte of an end mark (0x01): behind all keys that have what the mark ends.
inline constexpr char kAfterEnd = 0x02;

/// Appends enc(bytes).
void AppendEncoded(std::string& out, std::string_view bytes);

/// Appends be64(~timestamp).
void AppendTimestamp(std::string& out, uint64_t timestamp);

/// How many bytes the encoded component at the start of `in` has, its end included; nullopt if it is
/// malformed.
std::optional<size_t> EncodedSize(std::string_view in);

/// Decodes one whole enc(...), end included, into `out`; false if it is malformed.
bool Decode(std::string_view encoded, std::string& out);

/// The timestamp in the last 8 bytes of a cell's key, which must have that many.
inline uint64_t TimestampOf(std::string_view key) {
  return ~ReadBigEndian<uint64_t>(key.substr(key.size() - kTimestampBytes));
}

/// The first key behind all keys that start with `encoded`, which must end with an end mark: 0x00 0x01 ->
/// 0x00 0x02.
std::string EndOf(std::string_view encoded);

/// A key taken apart, without copying: still encoded, ends included.
struct CellKey {
  std::string_view row;
  std::string_view column;
  uint64_t timestamp = 0;
};

/// nullopt if `key` is not the key of a cell.
std::optional<CellKey> ParseCellKey(std::string_view key);

}  // namespace kvstore::rocks
