#include "export/cell_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "json/bytes_json.h"
#include "json/json_text.h"

namespace kvstore::exports {
namespace {

using pipe::ColumnType;

constexpr size_t kShownBytes = 40;

absl::Status NotOfType(std::string_view value, std::string_view type) {
  const bool is_long = value.size() > kShownBytes;
  // The text may be of any bytes; who prints the message escapes them.
  return absl::FailedPreconditionError(
      fmt::format("'{}{}' is not {}", value.substr(0, kShownBytes), is_long ? "..." : "", type));
}

/// The number that all of the text is; nullopt if it is none.
template <typename Number>
std::optional<Number> ParseAll(std::string_view text) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

absl::Status AddText(pipe::BatchBuilder& rows, size_t column, std::string_view text) {
  if (!IsUtf8(text)) return absl::FailedPreconditionError("its bytes are not UTF-8");
  rows.AddBytes(column, text);
  return absl::OkStatus();
}

constexpr std::string_view kWhole = "a whole number of 64 bits";
constexpr std::string_view kReal = "a finite number";
constexpr std::string_view kTruth = "true or false";

}  // namespace

absl::Status AddCell(pipe::BatchBuilder& rows, size_t column, ColumnType type, std::string_view bytes) {
  switch (type) {
    case ColumnType::kText:
      return AddText(rows, column, bytes);
    case ColumnType::kInt64: {
      const auto number = ParseAll<int64_t>(bytes);
      if (!number) return NotOfType(bytes, kWhole);
      rows.AddNumber(column, *number);
      return absl::OkStatus();
    }
    case ColumnType::kDouble: {
      const auto number = ParseAll<double>(bytes);
      if (!number || !std::isfinite(*number)) return NotOfType(bytes, kReal);
      rows.AddDouble(column, *number);
      return absl::OkStatus();
    }
    case ColumnType::kBool:
      if (bytes != "true" && bytes != "false") return NotOfType(bytes, kTruth);
      rows.AddNumber(column, bytes == "true" ? 1 : 0);
      return absl::OkStatus();
    default:
      rows.AddBytes(column, bytes);
      return absl::OkStatus();
  }
}

absl::Status AddField(pipe::BatchBuilder& rows, size_t column, ColumnType type, const Json* field) {
  if (field == nullptr || field->is_null()) {
    rows.AddNull(column);
    return absl::OkStatus();
  }
  switch (type) {
    case ColumnType::kInt64: {
      const bool fits = field->is_number_integer() &&
                        (!field->is_number_unsigned() ||
                         field->get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
      if (!fits) return NotOfType(TextOf(*field), kWhole);
      rows.AddNumber(column, field->get<int64_t>());
      return absl::OkStatus();
    }
    case ColumnType::kDouble:
      if (!field->is_number()) return NotOfType(TextOf(*field), kReal);
      rows.AddDouble(column, field->get<double>());
      return absl::OkStatus();
    case ColumnType::kBool:
      if (!field->is_boolean()) return NotOfType(TextOf(*field), kTruth);
      rows.AddNumber(column, field->get<bool>() ? 1 : 0);
      return absl::OkStatus();
    default:
      rows.AddBytes(column, field->is_string() ? field->get_ref<const std::string&>() : TextOf(*field));
      return absl::OkStatus();
  }
}

const Json* FindField(const Json& document, std::string_view path) {
  const Json* at = &document;
  while (at->is_object()) {
    const size_t dot = std::min(path.find('.'), path.size());
    const auto found = at->find(path.substr(0, dot));
    if (found == at->end()) return nullptr;
    at = &*found;
    if (dot == path.size()) return at;
    path.remove_prefix(dot + 1);
  }
  return nullptr;
}

}  // namespace kvstore::exports
