#include "wire/packed_rows.h"

namespace kvstore::wire {

void AddRow(std::string_view key, const std::vector<Item>& items, PackedRows& packed) {
  packed.add_key_bytes(static_cast<uint32_t>(key.size()));
  packed.add_columns(static_cast<uint32_t>(items.size()));
  packed.mutable_keys()->append(key);
  AppendPacked(items, *packed.mutable_items());
}

PackedRowsReader::PackedRowsReader(const PackedRows& packed)
    : key_bytes_(packed.key_bytes().data()),
      columns_(packed.columns().data()),
      keys_(packed.keys()),
      items_(packed.items()),
      rows_left_(static_cast<size_t>(packed.key_bytes_size())),
      continues_(packed.continues()),
      malformed_(packed.columns_size() != packed.key_bytes_size() ||
                 (rows_left_ == 0 && !(keys_.empty() && items_.CheckEnd().ok()))) {
  // The next row is refused, also where there are only parts of one.
  if (malformed_) rows_left_ = 1;
}

absl::Status PackedRowsReader::Next(ScannedRow& row) {
  malformed_ = malformed_ || *key_bytes_ > keys_.size();
  if (!malformed_) {
    row.key.assign(keys_.substr(0, *key_bytes_));
    malformed_ = !items_.Read(*columns_, row.items).ok();
  }
  const bool last = rows_left_ == 1;
  if (!malformed_) {
    keys_.remove_prefix(*key_bytes_++);
    ++columns_;
    malformed_ = last && !(keys_.empty() && items_.CheckEnd().ok());
  }
  if (malformed_) {
    return absl::InternalError("the server's answer: packed rows that do not fit together");
  }
  --rows_left_;
  row.continues = last && continues_;
  return absl::OkStatus();
}

}  // namespace kvstore::wire
