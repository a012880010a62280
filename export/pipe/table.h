#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The tables that `kv` sends to `kv-parquet` through a pipe. `kv-parquet` links nothing of ours but this, so
/// that it needs the standard library alone.
///
///   stream  "KVTABLE1", a frame with the schema, frames with batches, a frame that ends the table
///   frame   u32 kind, u32 bytes, that many bytes
///
/// A stream without its last frame is not a table: its writer has died. Numbers are as the machine has them,
/// because both ends run on one. The form may change with any version: the two programs are built together.
namespace kvstore::pipe {

inline constexpr std::string_view kMagic = "KVTABLE1";
inline constexpr size_t kFrameHeaderBytes = 8;
/// The most bytes of a frame, without its header.
inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;
inline constexpr size_t kMaxColumns = 1000;
inline constexpr size_t kMaxColumnNameBytes = 1024;
/// The most rows of a batch.
inline constexpr size_t kMaxBatchRows = size_t{1} << 17;
/// Notes of a schema are few and short.
inline constexpr size_t kMaxNotes = 100;
inline constexpr size_t kMaxNoteBytes = size_t{64} << 10;

enum class FrameKind : uint32_t { kSchema = 1, kBatch = 2, kEnd = 3 };

/// The type of a column's values.
enum class ColumnType : uint8_t {
  kBytes = 1,   ///< Any bytes.
  kText = 2,    ///< UTF-8.
  kInt64 = 3,   ///< A signed number of 64 bits.
  kInt32 = 4,   ///< A signed number of 32 bits.
  kDouble = 5,  ///< A real number.
  kBool = 6,
  kTime = 7,  ///< Milliseconds since 1970, UTC.
};
inline constexpr ColumnType kLastColumnType = ColumnType::kTime;

/// Whether values of the type have bytes of any number. All others are sent as 64 bits.
constexpr bool HasBytes(ColumnType type) { return type == ColumnType::kBytes || type == ColumnType::kText; }

struct Column {
  std::string name;  ///< UTF-8.
  ColumnType type = ColumnType::kBytes;
  bool nullable = false;  ///< Whether a row may have no value.
  friend bool operator==(const Column&, const Column&) = default;
};

struct Schema {
  std::vector<Column> columns;
  /// The notes that the file has about itself, by names.
  std::vector<std::pair<std::string, std::string>> notes;
  friend bool operator==(const Schema&, const Schema&) = default;
};

/// Returns the frame that begins a table, with the magic in front.
std::string BeginFrame(const Schema& schema);
/// Returns the frame that ends a table.
///
/// rows  of all batches.
std::string EndFrame(uint64_t rows);

/// Reads what a frame with a schema has, which anybody may have sent. Returns nullopt, and sets `problem`, if
/// it is malformed or beyond the limits.
std::optional<Schema> ReadSchema(std::string_view bytes, std::string& problem);

/// The values of one column in a batch. Points into the bytes of its frame.
struct ColumnView {
  /// A bit for each row, from the lowest of the first byte: whether it has a value. Null: all have one.
  const uint8_t* validity = nullptr;
  const int64_t* numbers = nullptr;  ///< If the type has no bytes, one for each row; a double as its bits.
  const int32_t* offsets = nullptr;  ///< Else where in `bytes` each value begins, and the last one ends.
  std::string_view bytes;
};

struct BatchView {
  uint32_t rows = 0;
  std::vector<ColumnView> columns;
};

/// Reads what a frame with a batch has, which anybody may have sent. Returns nullopt, and sets `problem`, if
/// it does not fit the schema. Text is not looked at.
///
/// bytes  at an address that is a multiple of 8; must outlive the view.
std::optional<BatchView> ReadBatch(const Schema& schema, std::string_view bytes, std::string& problem);

/// Reads what the last frame has: the number of rows. Returns nullopt if it is malformed.
std::optional<uint64_t> ReadEnd(std::string_view bytes);

}  // namespace kvstore::pipe
