#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wire/packed_items.h"

using namespace kvstore;

/// Any bytes as PackedItems are refused, or give items that are no larger than the message, and that are the
/// same after they are packed and unpacked again. The memory of the input before is reused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::vector<Item> items;
  v1::PackedItems packed;
  if (!packed.ParseFromArray(data, static_cast<int>(size)) || !wire::Unpack(packed, items).ok()) return 0;
  const wire::ItemsSize all = wire::SizeOf(items);
  if (all.cells != static_cast<size_t>(packed.timestamps_size()) || all.bytes > packed.bytes().size()) {
    std::abort();
  }
  v1::PackedItems again;
  wire::Pack(items, all, again);
  std::vector<Item> unpacked;
  if (!wire::Unpack(again, unpacked).ok() || unpacked != items) std::abort();
  return 0;
}
