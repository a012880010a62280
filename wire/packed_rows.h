#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore_api/types.h"
#include "wire/packed_items.h"

/// The rows of a message of a scan in one piece (ScanRowsResponse.PackedRows in kvstore.proto). Where each
/// row is a message of its own, with others inside, making these and taking them apart costs more than
/// reading the rows.
namespace kvstore::wire {

using PackedRows = v1::ScanRowsResponse::PackedRows;

/// Returns whether packing pays for a message that begins with a row of this size. Where cells are large,
/// messages are cheaper, which take their memory over in place of copying it.
inline bool WorthPackingRows(const ItemsSize& first) { return first.bytes < 16'384 * first.cells; }

/// Adds a row after those that `packed` has.
void AddRow(std::string_view key, const std::vector<Item>& items, PackedRows& packed);

/// Takes packed rows apart, one after the other.
class PackedRowsReader {
 public:
  /// Reads no rows.
  PackedRowsReader() = default;
  /// packed  Must outlive the reader, and not change while it reads.
  explicit PackedRowsReader(const PackedRows& packed);

  /// Returns whether a row is left.
  bool has_next() const { return rows_left_ > 0; }
  /// Unpacks the next row, of which there must be one, into `row`, whose memory is reused. INTERNAL if the
  /// parts do not fit together, which our servers do not send; `row` may have any content then, and the
  /// reader stays where it was.
  absl::Status Next(ScannedRow& row);

 private:
  const uint32_t* key_bytes_ = nullptr;
  const uint32_t* columns_ = nullptr;
  std::string_view keys_;
  PackedItemsReader items_;
  size_t rows_left_ = 0;
  bool continues_ = false;  // the last row
  bool malformed_ = false;
};

}  // namespace kvstore::wire
