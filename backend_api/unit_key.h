#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kvstore_api/dataset.h"

/// Order-preserving encoding of keys that have several components: those of cells in the embedded store
/// (docs/key-format.md), and those of units in migrations (unit.h). Golden tests pin them.
///
///   enc   each 0x00 byte becomes 0x00 0xFF; the end is 0x00 0x01
///
/// enc preserves byte order, and no encoding is a prefix of another.
namespace kvstore {

/// Replaces the last byte of an end mark (0x01) to make a key after all keys that start with the same
/// component.
inline constexpr char kAfterEnd = 0x02;

/// Appends enc(bytes).
void AppendEncoded(std::string& out, std::string_view bytes);

/// Returns the size of the encoded component at the start of `in`, with its end mark; nullopt if it is
/// malformed.
std::optional<size_t> EncodedSize(std::string_view in);

/// Decodes one whole enc(...), with its end mark, into `out`; false if it is malformed.
bool Decode(std::string_view encoded, std::string& out);

/// Returns the first key after all keys that start with `encoded`, which must end with an end mark:
/// 0x00 0x01 -> 0x00 0x02.
std::string EndOf(std::string_view encoded);

/// enc(row) enc(column)
std::string RowUnitKey(std::string_view row, std::string_view column);
/// The row and column in a unit's key; no column for enc(row) alone.
struct RowUnit {
  std::string row;
  std::optional<std::string> column;
};
/// Returns nullopt for a key of any other form.
std::optional<RowUnit> ParseRowUnitKey(std::string_view key);

/// be64(id), and be64(from) be64(to).
std::string ObjectUnitKey(uint64_t id);
std::string MappingUnitKey(uint64_t from, uint64_t to);

/// Whether this is the key of a unit of this shape. False for enc(row) alone, which stands for a whole row.
bool IsUnitKey(Shape shape, std::string_view key);

/// Returns the key as text for messages: "row 'user:7' column 'click'", "object 4611...", "mapping 5 -> 6".
/// Unprintable bytes are escaped.
std::string ShowUnitKey(Shape shape, std::string_view key);

}  // namespace kvstore
