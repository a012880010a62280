#include "backends/rocksdb/rows/cell_key.h"

namespace kvstore::rocks {

void AppendTimestamp(std::string& out, uint64_t timestamp) { AppendBigEndian(out, ~timestamp); }

std::optional<CellKey> ParseCellKey(std::string_view key) {
  const auto row = EncodedSize(key);
  if (!row) return std::nullopt;
  const auto column = EncodedSize(key.substr(*row));
  if (!column || key.size() != *row + *column + kTimestampBytes) return std::nullopt;
  return CellKey{key.substr(0, *row), key.substr(*row, *column), TimestampOf(key)};
}

}  // namespace kvstore::rocks
