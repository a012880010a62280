#include "export/pipe/table.h"

#include <cstring>
#include <limits>

namespace kvstore::pipe {
namespace {

template <typename Number>
void Append(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string Frame(FrameKind kind, std::string_view bytes) {
  std::string frame;
  Append(frame, static_cast<uint32_t>(kind));
  Append(frame, static_cast<uint32_t>(bytes.size()));
  frame += bytes;
  return frame;
}

/// Takes parts from the front of bytes.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::optional<std::string_view> Take(size_t size) {
    if (size > rest_.size()) return std::nullopt;
    const std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  /// Takes as many bytes, and those that fill them up to a multiple of 8.
  std::optional<std::string_view> TakePadded(size_t size) {
    const auto part = Take((size + 7) / 8 * 8);
    return part ? std::optional(part->substr(0, size)) : std::nullopt;
  }
  template <typename Number>
  std::optional<Number> TakeNumber() {
    const auto part = Take(sizeof(Number));
    if (!part) return std::nullopt;
    Number number = 0;
    std::memcpy(&number, part->data(), sizeof(number));
    return number;
  }
  std::optional<std::string> TakeText(size_t max) {
    const auto size = TakeNumber<uint32_t>();
    if (!size || *size > max) return std::nullopt;
    const auto part = Take(*size);
    return part ? std::optional<std::string>(*part) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

void AppendText(std::string& out, std::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  out += text;
}

std::optional<Column> TakeColumn(Parts& parts) {
  const auto type = parts.TakeNumber<uint8_t>();
  const auto nullable = parts.TakeNumber<uint8_t>();
  auto name = parts.TakeText(kMaxColumnNameBytes);
  const bool is_known = type && *type >= 1 && *type <= static_cast<uint8_t>(kLastColumnType);
  if (!is_known || !nullable || *nullable > 1 || !name) return std::nullopt;
  return Column{*std::move(name), static_cast<ColumnType>(*type), *nullable == 1};
}

/// Whether the numbers are offsets into so many bytes.
bool AreOffsets(const int32_t* offsets, size_t count, size_t bytes) {
  if (offsets[0] != 0 || static_cast<size_t>(offsets[count - 1]) != bytes) return false;
  for (size_t i = 1; i < count; ++i) {
    if (offsets[i] < offsets[i - 1]) return false;
  }
  return true;
}

bool FitInt32(const int64_t* numbers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] < std::numeric_limits<int32_t>::min() || numbers[i] > std::numeric_limits<int32_t>::max())
      return false;
  }
  return true;
}

/// Takes a column of a batch; nullopt if it is not all there, or is not what the schema says.
std::optional<ColumnView> TakeColumnOf(Parts& parts, const Column& column, size_t rows) {
  ColumnView view;
  if (column.nullable) {
    const auto validity = parts.TakePadded((rows + 7) / 8);
    if (!validity) return std::nullopt;
    view.validity = reinterpret_cast<const uint8_t*>(validity->data());
  }
  if (!HasBytes(column.type)) {
    const auto numbers = parts.Take(rows * sizeof(int64_t));
    if (!numbers) return std::nullopt;
    view.numbers = reinterpret_cast<const int64_t*>(numbers->data());
    if (column.type == ColumnType::kInt32 && !FitInt32(view.numbers, rows)) return std::nullopt;
    return view;
  }
  const auto offsets = parts.TakePadded((rows + 1) * sizeof(int32_t));
  if (!offsets) return std::nullopt;
  view.offsets = reinterpret_cast<const int32_t*>(offsets->data());
  const int32_t size = view.offsets[rows];
  if (size < 0) return std::nullopt;
  const auto bytes = parts.TakePadded(static_cast<size_t>(size));
  if (!bytes || !AreOffsets(view.offsets, rows + 1, bytes->size())) return std::nullopt;
  view.bytes = *bytes;
  return view;
}

}  // namespace

std::string BeginFrame(const Schema& schema) {
  std::string bytes;
  Append(bytes, static_cast<uint32_t>(schema.columns.size()));
  for (const Column& column : schema.columns) {
    Append(bytes, static_cast<uint8_t>(column.type));
    Append(bytes, static_cast<uint8_t>(column.nullable ? 1 : 0));
    AppendText(bytes, column.name);
  }
  Append(bytes, static_cast<uint32_t>(schema.notes.size()));
  for (const auto& [name, text] : schema.notes) {
    AppendText(bytes, name);
    AppendText(bytes, text);
  }
  return std::string(kMagic) + Frame(FrameKind::kSchema, bytes);
}

std::string EndFrame(uint64_t rows) {
  std::string bytes;
  Append(bytes, rows);
  return Frame(FrameKind::kEnd, bytes);
}

std::optional<Schema> ReadSchema(std::string_view bytes, std::string& problem) {
  Parts parts(bytes);
  Schema schema;
  const auto columns = parts.TakeNumber<uint32_t>();
  if (!columns || *columns == 0 || *columns > kMaxColumns) {
    problem = "the schema has no columns, or more than " + std::to_string(kMaxColumns);
    return std::nullopt;
  }
  for (uint32_t i = 0; i < *columns; ++i) {
    auto column = TakeColumn(parts);
    if (!column) {
      problem = "the schema's column " + std::to_string(i) + " is malformed";
      return std::nullopt;
    }
    schema.columns.push_back(*std::move(column));
  }
  const auto notes = parts.TakeNumber<uint32_t>();
  bool is_whole = notes && *notes <= kMaxNotes;
  for (uint32_t i = 0; is_whole && i < *notes; ++i) {
    auto name = parts.TakeText(kMaxNoteBytes);
    auto text = name ? parts.TakeText(kMaxNoteBytes) : std::nullopt;
    is_whole = text.has_value();
    if (is_whole) schema.notes.emplace_back(*std::move(name), *std::move(text));
  }
  if (is_whole && parts.empty()) return schema;
  problem = "the schema's notes are malformed";
  return std::nullopt;
}

std::optional<BatchView> ReadBatch(const Schema& schema, std::string_view bytes, std::string& problem) {
  Parts parts(bytes);
  const auto rows = parts.TakeNumber<uint32_t>();
  const auto unused = parts.TakeNumber<uint32_t>();
  if (!rows || !unused || *rows == 0 || *rows > kMaxBatchRows) {
    problem = "a batch has no rows, or more than " + std::to_string(kMaxBatchRows);
    return std::nullopt;
  }
  BatchView batch{.rows = *rows, .columns = {}};
  for (const Column& column : schema.columns) {
    const auto view = TakeColumnOf(parts, column, *rows);
    if (!view) {
      problem = "a batch's column '" + column.name + "' is malformed";
      return std::nullopt;
    }
    batch.columns.push_back(*view);
  }
  if (parts.empty()) return batch;
  problem = "a batch has more bytes than its columns";
  return std::nullopt;
}

std::optional<uint64_t> ReadEnd(std::string_view bytes) {
  Parts parts(bytes);
  const auto rows = parts.TakeNumber<uint64_t>();
  return parts.empty() ? rows : std::nullopt;
}

}  // namespace kvstore::pipe
