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
  std::string& bytes = *packed.mutable_bytes();
  bytes.reserve(size.bytes);
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

absl::Status Unpack(const v1::PackedItems& packed, std::vector<Item>& items) {
  const auto malformed = [] {
    return absl::InternalError("the server's answer: packed items that do not fit together");
  };
  const int cells = packed.timestamps_size();
  // Every column has a cell. This is checked before `items` grows, so that columns without cells do not
  // allocate memory for many items.
  if (packed.cells_size() != packed.name_bytes_size() || packed.value_bytes_size() != cells ||
      packed.cells_size() > cells) {
    return malformed();
  }
  std::string_view rest = packed.bytes();
  int cell = 0;
  items.resize(static_cast<size_t>(packed.cells_size()));
  for (int i = 0; i < packed.cells_size(); ++i) {
    Item& item = items[static_cast<size_t>(i)];
    if (packed.cells(i) == 0 || packed.cells(i) > static_cast<uint32_t>(cells - cell)) return malformed();
    if (!Consume(rest, packed.name_bytes(i), item.column)) return malformed();
    item.cells.resize(packed.cells(i));
    for (Cell& one : item.cells) {
      one.timestamp = packed.timestamps(cell);
      if (!Consume(rest, packed.value_bytes(cell), one.value)) return malformed();
      ++cell;
    }
  }
  return cell == cells && rest.empty() ? absl::OkStatus() : malformed();
}

}  // namespace kvstore::wire
