#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kvstore_api/dataset.h"

/// Keys of bytes that keep their order when they are put together: those of cells in the embedded store
/// (docs/key-format.md), and of units in migrations (migration_endpoint.h). Golden tests pin them.
///
///   enc   each 0x00 byte becomes 0x00 0xFF; the end is 0x00 0x01
///
/// enc keeps byte order and no encoding is a prefix of another.
namespace kvstore {

/// In the place of the last byte of an end mark (0x01): behind all keys that have what the mark ends.
inline constexpr char kAfterEnd = 0x02;

/// Appends enc(bytes).
void AppendEncoded(std::string& out, std::string_view bytes);

/// How many bytes the encoded component at the start of `in` has, its end included; nullopt if it is
/// malformed.
std::optional<size_t> EncodedSize(std::string_view in);

/// Decodes one whole enc(...), end included, into `out`; false if it is malformed.
bool Decode(std::string_view encoded, std::string& out);

/// The first key behind all keys that start with `encoded`, which must end with an end mark: 0x00 0x01 ->
/// 0x00 0x02.
std::string EndOf(std::string_view encoded);

/// enc(row) enc(column)
std::string RowUnitKey(std::string_view row, std::string_view column);
/// The row and column of a unit's key; without a column for enc(row) alone. nullopt if it is neither.
struct RowUnit {
  std::string row;
  std::optional<std::string> column;
};
std::optional<RowUnit> ParseRowUnitKey(std::string_view key);

/// be64(id), and be64(from) be64(to).
std::string ObjectUnitKey(uint64_t id);
std::string MappingUnitKey(uint64_t from, uint64_t to);

/// Whether it is the key of a unit of this shape. Keys of whole rows are not.
bool IsUnitKey(Shape shape, std::string_view key);

/// The key as a person reads it: "row 'user:7' column 'click'", "object 4611...", "mapping 5 -> 6"; bytes
/// that do not print are escaped. For messages.
std::string ShowUnitKey(Shape shape, std::string_view key);

}  // namespace kvstore
