#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "export/pipe/batch_builder.h"
#include "export/pipe/table.h"
#include "json/json.h"

/// Values of a dataset as those of a table's column.
namespace kvstore::exports {

/// Adds the bytes of a cell to a column of the row that is being made. FAILED_PRECONDITION, with the problem,
/// if they are not a value of the type.
absl::Status AddCell(pipe::BatchBuilder& rows, size_t column, pipe::ColumnType type, std::string_view bytes);

/// Adds a field of a document; null: it has no such field. A string column has other values as their JSON
/// text.
absl::Status AddField(pipe::BatchBuilder& rows, size_t column, pipe::ColumnType type, const Json* field);

/// Finds the field at a path whose parts are separated by '.'; null if there is none.
const Json* FindField(const Json& document, std::string_view path);

}  // namespace kvstore::exports
