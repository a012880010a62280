#include "wire/packed_items.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kvstore::wire {
namespace {

/// Moves `bytes` bytes from the front of `from` into `to`; false if there are fewer.
bool Consume(std::string_view& from, uint32_t bytes, std::string& to) {
  if (bytes > from.size()) return false;
  to.assign(from.data(), bytes);
  from.remove_prefix(bytes);
  return true;
}

absl::Status MalformedError() {
  return absl::InternalError("the server's answer: packed items that do not fit together");
}

}  // namespace

ItemsSize SizeOf(const std::vector<Item>& items) {
  ItemsSize size;
  for (const Item& item : items) {
    size.cells += item.cells.size();
    size.bytes += item.column.size();
    for (const Cell& cell : item.cells) size.bytes += cell.value.size();
  }
  return size;
}

void Pack(const std::vector<Item>& items, const ItemsSize& size, v1::PackedItems& packed) {
  packed.mutable_name_bytes()->Reserve(static_cast<int>(items.size()));
  packed.mutable_cells()->Reserve(static_cast<int>(items.size()));
  packed.mutable_timestamps()->Reserve(static_cast<int>(size.cells));
  packed.mutable_value_bytes()->Reserve(static_cast<int>(size.cells));
  packed.mutable_bytes()->reserve(size.bytes);
  AppendPacked(items, packed);
}

void AppendPacked(const std::vector<Item>& items, v1::PackedItems& packed) {
  std::string& bytes = *packed.mutable_bytes();
  for (const Item& item : items) {
    packed.add_name_bytes(static_cast<uint32_t>(item.column.size()));
    packed.add_cells(static_cast<uint32_t>(item.cells.size()));
    bytes += item.column;
    for (const Cell& cell : item.cells) {
      packed.add_timestamps(cell.timestamp);
      packed.add_value_bytes(static_cast<uint32_t>(cell.value.size()));
      bytes += cell.value;
    }
  }
}

PackedItemsReader::PackedItemsReader(const v1::PackedItems& packed)
    : name_bytes_(packed.name_bytes().data()),
      cells_(packed.cells().data()),
      timestamps_(packed.timestamps().data()),
      value_bytes_(packed.value_bytes().data()),
      bytes_(packed.bytes()),
      columns_left_(static_cast<size_t>(packed.cells_size())),
      cells_left_(static_cast<size_t>(packed.timestamps_size())),
      // Every column has a cell. This is checked before any items grow, so that columns without cells do not
      // allocate memory for many items.
      malformed_(packed.cells_size() != packed.name_bytes_size() ||
                 packed.value_bytes_size() != packed.timestamps_size() ||
                 packed.cells_size() > packed.timestamps_size()) {}

absl::Status PackedItemsReader::Read(uint32_t columns, std::vector<Item>& items) {
  malformed_ = malformed_ || columns > columns_left_;
  if (malformed_) return MalformedError();
  malformed_ = true;  // until all of them were read
  items.resize(columns);
  for (Item& item : items) {
    const size_t cells = *cells_++;
    if (cells == 0 || cells > cells_left_ || !Consume(bytes_, *name_bytes_++, item.column)) {
      return MalformedError();
    }
    item.cells.resize(cells);
    for (Cell& cell : item.cells) {
      cell.timestamp = *timestamps_++;
      if (!Consume(bytes_, *value_bytes_++, cell.value)) return MalformedError();
    }
    cells_left_ -= cells;
  }
  columns_left_ -= columns;
  malformed_ = false;
  return absl::OkStatus();
}

absl::Status PackedItemsReader::CheckEnd() const {
  const bool ended = columns_left_ == 0 && cells_left_ == 0 && bytes_.empty();
  return ended && !malformed_ ? absl::OkStatus() : MalformedError();
}

absl::Status Unpack(const v1::PackedItems& packed, std::vector<Item>& items) {
  PackedItemsReader reader(packed);
  if (auto status = reader.Read(static_cast<uint32_t>(packed.cells_size()), items); !status.ok()) {
    return status;
  }
  return reader.CheckEnd();
}

}  // namespace kvstore::wire
