#include <cstdint>
#include <cstdlib>

#include "wire/packed_rows.h"

using namespace kvstore;

/// Any bytes as PackedRows are refused at a row, at which the reader then stays, or give rows that are no
/// larger than the message, and that are the same after they are packed and unpacked again. The memory of the
/// row before is reused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ScannedRow row;
  wire::PackedRows packed;
  if (!packed.ParseFromArray(data, static_cast<int>(size))) return 0;
  wire::PackedRowsReader reader(packed);
  wire::PackedRows again;
  size_t bytes = 0;
  while (reader.has_next()) {
    if (!reader.Next(row).ok()) {
      if (!reader.has_next() || reader.Next(row).ok()) std::abort();
      return 0;
    }
    bytes += row.key.size() + wire::SizeOf(row.items).bytes;
    if (row.continues && (reader.has_next() || !packed.continues())) std::abort();
    wire::AddRow(row.key, row.items, again);
  }
  if (bytes != packed.keys().size() + packed.items().bytes().size()) std::abort();
  if (packed.key_bytes_size() > 0 && packed.continues()) again.set_continues(true);
  wire::PackedRowsReader first(packed);
  wire::PackedRowsReader second(again);
  while (first.has_next()) {
    ScannedRow other;
    if (!second.has_next() || !first.Next(row).ok() || !second.Next(other).ok()) std::abort();
    if (row.key != other.key || row.items != other.items || row.continues != other.continues) std::abort();
  }
  if (second.has_next()) std::abort();
  return 0;
}
