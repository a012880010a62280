#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvstore::columnar {

/// The form that the lines of a file are to have.
enum class LineForm : uint8_t {
  kRows,      ///< {"row", "items": [{"column", "value", "timestamp"}]}
  kObjects,   ///< {"id", "data"}
  kMappings,  ///< {"from", "to", "sequence"}
  kPoints,    ///< {COLUMN: value, ...}, without columns that have none
};

struct LineOptions {
  LineForm form = LineForm::kRows;
  std::vector<std::string> without;  ///< Columns that are not read.
  std::vector<std::string> text;     ///< Columns of points whose values become strings.
  std::optional<uint64_t> time;      ///< The timestamp (ms) of cells in files that have none.
};

}  // namespace kvstore::columnar
