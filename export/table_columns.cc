#include "export/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "json/bytes_json.h"
#include "kvstore_api/limits.h"

namespace kvstore::exports {
namespace {

using pipe::ColumnType;

constexpr std::array<std::pair<std::string_view, ColumnType>, 5> kTypes = {{{"binary", ColumnType::kBytes},
                                                                            {"string", ColumnType::kText},
                                                                            {"int64", ColumnType::kInt64},
                                                                            {"double", ColumnType::kDouble},
                                                                            {"bool", ColumnType::kBool}}};

/// Room for the columns that every table has.
constexpr size_t kMaxAsked = pipe::kMaxColumns - 10;

std::optional<ColumnType> TypeNamed(std::string_view name) {
  const auto* const found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) { return type.first == name; });
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

/// The columns that tables have in any case.
std::vector<std::string> OwnColumns(Shape shape) {
  if (shape == Shape::kRows) return {"row"};
  return {"id", "shard", "type", "local_id", "timestamp", "data"};
}

std::string InLowerCase(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

absl::Status Wrong(std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("columns: {}", problem));
}

absl::Status CheckName(const std::string& name) {
  if (name.empty()) return Wrong("one has no name, which no reader of Parquet would take");
  if (name.size() > kMaxColumnNameBytes) {
    return Wrong(fmt::format("a name has {} bytes, the limit is {}", name.size(), kMaxColumnNameBytes));
  }
  if (!IsUtf8(name))
    return Wrong("a name is not UTF-8, as names in Parquet must be; export the rows as long");
  return absl::OkStatus();
}

}  // namespace

TableColumn ParseTableColumn(std::string_view text, Shape shape) {
  const ColumnType usual = shape == Shape::kObjects ? ColumnType::kText : ColumnType::kBytes;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {std::string(text), usual};
  const auto type = TypeNamed(text.substr(colon + 1));
  return type ? TableColumn{std::string(text.substr(0, colon)), *type}
              : TableColumn{std::string(text), usual};
}

std::string ToText(const TableColumn& column) {
  const auto* const type = std::find_if(kTypes.begin(), kTypes.end(),
                                        [&](const auto& known) { return known.second == column.type; });
  return fmt::format("{}:{}", column.name, type->first);
}

absl::Status CheckTableOptions(const TableOptions& options, Shape shape) {
  if (shape != Shape::kRows && options.text) {
    return absl::InvalidArgumentError(
        fmt::format("text: only rows have bytes that may be text; the dataset has {}", Name(shape)));
  }
  if (options.columns.empty()) return absl::OkStatus();
  if (shape == Shape::kMappings) return Wrong("mappings always have the same three, from, to and sequence");
  if (options.columns.size() > kMaxAsked) {
    return Wrong(fmt::format("there are {}, the limit is {}", options.columns.size(), kMaxAsked));
  }
  // Spark and DuckDB do not tell names apart that differ in case alone.
  std::set<std::string> names;
  for (std::string& own : OwnColumns(shape)) names.insert(std::move(own));
  for (const TableColumn& column : options.columns) {
    if (auto status = CheckName(column.name); !status.ok()) return status;
    if (!names.insert(InLowerCase(column.name)).second) {
      return Wrong(
          fmt::format("'{}' is there already, as one of yours or of those that every table of {} has ({}); "
                      "the case of letters does not count",
                      column.name, Name(shape), fmt::join(OwnColumns(shape), ", ")));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::exports
