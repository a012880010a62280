#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "export/pipe/table.h"
#include "kvstore_api/dataset.h"

namespace kvstore::exports {

/// A column of a table that was asked for: of wide rows the column of that name; of objects a field of their
/// documents.
struct TableColumn {
  std::string name;  ///< For objects, a path: "owner.name".
  pipe::ColumnType type = pipe::ColumnType::kBytes;
  friend bool operator==(const TableColumn&, const TableColumn&) = default;
};

/// The options of the tables that are made of a dataset.
struct TableOptions {
  /// Rows: the table is wide, and has these. Objects: the fields that are columns of their own.
  std::vector<TableColumn> columns;
  /// Rows: keys, columns and values of long tables are text, which is checked.
  bool text = false;
  friend bool operator==(const TableOptions&, const TableOptions&) = default;
};

/// The types that columns may have, for messages and helps.
inline constexpr char kTypeNames[] = "binary, string, int64, double, bool";

/// Reads "NAME" or "NAME:TYPE" (kTypeNames). A text after the last ':' that is no type belongs to the name.
///
/// shape  Without a type columns of rows are binary, and fields of objects strings.
TableColumn ParseTableColumn(std::string_view text, Shape shape);
/// "NAME:TYPE"
std::string ToText(const TableColumn& column);

/// INVALID_ARGUMENT if tables of datasets of this shape cannot have these columns.
absl::Status CheckTableOptions(const TableOptions& options, Shape shape);

}  // namespace kvstore::exports
