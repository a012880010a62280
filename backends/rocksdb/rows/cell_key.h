#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvstore_api/big_endian.h"
#include "kvstore_api/unit_key.h"

/// The stored form of a cell's name. See docs/key-format.md; golden tests pin it.
///
///   key   = enc(row) enc(column) be64(~timestamp)
/// enc is that of unit_key.h, so keys sort by row, then column, then newest
/// first under the plain bytewise comparator.
namespace kvstore::rocks {

inline constexpr size_t kTimestampBytes = 8;
/// Appends be64(~timestamp).
void AppendTimestamp(std::string& out, uint64_t timestamp);

/// The timestamp in the last 8 bytes of a cell's key, which must have that many.
inline uint64_t TimestampOf(std::string_view key) {
  return ~ReadBigEndian<uint64_t>(key.substr(key.size() - kTimestampBytes));
}

/// A key taken apart, without copying: still encoded, ends included.
struct CellKey {
  std::string_view row;
  std::string_view column;
  uint64_t timestamp = 0;
};

/// nullopt if `key` is not the key of a cell.
std::optional<CellKey> ParseCellKey(std::string_view key);

}  // namespace kvstore::rocks
