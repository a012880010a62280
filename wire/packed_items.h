#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore_api/types.h"
#include "wire/convert.h"

/// Items in one piece (PackedItems in kvstore.proto): a message and two strings for each cell, made here and
/// taken apart there, cost more than to read the cells.
namespace kvstore::wire {

struct ItemsSize {
  size_t cells = 0;
  size_t bytes = 0;  ///< Of names and values.

  /// Roughly what they take in a message.
  size_t in_message() const { return bytes + 16 * cells; }
  /// One piece has five parts, and a copy of every byte: messages are cheaper for a few cells, and for large
  /// ones, whose memory they take over.
  bool worth_packing() const { return cells > 3 && bytes < 1024 * cells; }
};
/// Of an answer: all its columns and cells.
ItemsSize SizeOf(const std::vector<Item>& items);

/// size    of the items.
/// packed  empty before.
void Pack(const std::vector<Item>& items, const ItemsSize& size, v1::PackedItems& packed);

/// Replaces `items`, and reuses their memory. INTERNAL if the parts do not fit together, or a column has no
/// cells, neither of which a server of ours sends; `items` may be anything then.
absl::Status Unpack(const v1::PackedItems& packed, std::vector<Item>& items);

/// Into a message that has `items` or `packed`. If it is the second, `items` stays as it is, for the next;
/// else it is empty then.
///
/// size   of the items.
/// packs  the client understands the second.
template <typename Message>
void PutItems(std::vector<Item>& items, const ItemsSize& size, bool packs, Message& message) {
  if (packs && size.worth_packing()) return Pack(items, size, *message.mutable_packed());
  ToWire(std::move(items), *message.mutable_items());
  items.clear();
}

/// From a message that has `items` or `packed`, in place of `items`. Errors as Unpack.
template <typename Message>
absl::Status TakeItems(Message& message, std::vector<Item>& items) {
  if (message.has_packed()) return Unpack(message.packed(), items);
  items = FromWire(*message.mutable_items());
  return absl::OkStatus();
}

}  // namespace kvstore::wire
