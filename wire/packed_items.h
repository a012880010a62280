#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore_api/types.h"
#include "wire/convert.h"

/// Items in one piece (PackedItems in kvstore.proto). A message and two strings for each cell, built here and
/// taken apart there, would cost more than reading the cells.
namespace kvstore::wire {

/// The size of a list of items.
struct ItemsSize {
  size_t cells = 0;
  size_t bytes = 0;  ///< Bytes of names and values.

  /// Bytes that the items take in a message, about.
  size_t in_message() const { return bytes + 16 * cells; }
  /// Whether packing pays. A packed list has five parts and a copy of every byte; messages are cheaper for a
  /// few cells, and for large cells, whose memory they take over.
  bool worth_packing() const { return cells > 3 && bytes < 1024 * cells; }
};
/// The size of all columns and cells of an answer.
ItemsSize SizeOf(const std::vector<Item>& items);

/// Packs items into one piece.
///
/// size    the size of the items.
/// packed  must be empty.
void Pack(const std::vector<Item>& items, const ItemsSize& size, v1::PackedItems& packed);

/// Packs items after those that `packed` has.
void AppendPacked(const std::vector<Item>& items, v1::PackedItems& packed);

/// Takes packed items apart from the front, some columns at a time. Errors of all functions are INTERNAL: the
/// parts do not fit together, or a column has no cells, neither of which our servers send.
class PackedItemsReader {
 public:
  /// Reads nothing.
  PackedItemsReader() = default;
  /// packed  Must outlive the reader, and not change while it reads.
  explicit PackedItemsReader(const v1::PackedItems& packed);

  /// Unpacks so many columns into `items`, whose content is replaced and whose memory is reused. After an
  /// error `items` may have any content, and nothing further can be read.
  absl::Status Read(uint32_t columns, std::vector<Item>& items);
  /// Returns an error if anything is left.
  absl::Status CheckEnd() const;

 private:
  const uint32_t* name_bytes_ = nullptr;
  const uint32_t* cells_ = nullptr;
  const uint64_t* timestamps_ = nullptr;
  const uint32_t* value_bytes_ = nullptr;
  std::string_view bytes_;
  size_t columns_left_ = 0;
  size_t cells_left_ = 0;
  bool malformed_ = false;
};

/// Unpacks into `items`, whose content is replaced and whose memory is reused. INTERNAL if the parts do not
/// fit together, or a column has no cells, neither of which our servers send; `items` may have any content
/// then.
absl::Status Unpack(const v1::PackedItems& packed, std::vector<Item>& items);

/// Puts items into a message that has the fields `items` and `packed`. If it packs them, `items` keeps its
/// content, whose memory the caller can reuse; else `items` is empty afterwards.
///
/// size   the size of the items.
/// packs  whether the client understands `packed`.
template <typename Message>
void ItemsToWire(std::vector<Item>& items, const ItemsSize& size, bool packs, Message& message) {
  if (packs && size.worth_packing()) return Pack(items, size, *message.mutable_packed());
  ToWire(std::move(items), *message.mutable_items());
  items.clear();
}

/// Takes the items out of a message that has the fields `items` and `packed`, and replaces `items`. Errors as
/// Unpack.
template <typename Message>
absl::Status ItemsFromWire(Message& message, std::vector<Item>& items) {
  if (message.has_packed()) return Unpack(message.packed(), items);
  items = FromWire(*message.mutable_items());
  return absl::OkStatus();
}

}  // namespace kvstore::wire
