#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/rocksdb/rows/cell_key.h"

/// If any bytes parse as the key of a cell, they are the key of that cell, byte for byte.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvstore;
  using namespace kvstore::rocks;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto key = ParseCellKey(bytes)) {
    std::string row;
    std::string column;
    if (!Decode(key->row, row) || !Decode(key->column, column)) std::abort();
    std::string again;
    AppendEncoded(again, row);
    AppendEncoded(again, column);
    AppendTimestamp(again, key->timestamp);
    if (again != bytes) std::abort();
  }
  std::string encoded;
  AppendEncoded(encoded, bytes);
  std::string decoded;
  if (EncodedSize(encoded) != encoded.size() || !Decode(encoded, decoded) || decoded != bytes) std::abort();
  return 0;
}
