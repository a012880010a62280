#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "json/value_count.h"
#include "kvstore_api/types.h"
#include "server/call/call.h"

namespace kvstore::server {

/// The memory that the answer of a call takes while it is made into JSON, which is many times what was read.
/// It counts against the caller's share of the bytes in flight. Externally synchronised.
class HeldMemory {
 public:
  /// call  Must outlive this, and be admitted before anything is held.
  explicit HeldMemory(Call& call) : call_(call) {}

  /// Holds so much more. RESOURCE_EXHAUSTED, marked as refused, if the caller has no room for it.
  absl::Status Hold(size_t bytes) {
    pending_ += bytes;
    if (pending_ < kFreeBytes) return absl::OkStatus();
    auto held = call_.ReserveBytes(std::exchange(pending_, 0));
    if (held == nullptr) return MarkRefused(TooManyInFlightError());
    held_.push_back(std::move(held));
    return absl::OkStatus();
  }
  absl::Status Hold(std::span<const Item> items) { return Hold(SizeOf(items)); }
  /// Holds what a stored document takes.
  absl::Status HoldDocument(std::string_view text) {
    return Hold(2 * text.size() + CountJsonValues(text) * kJsonValueBytes);
  }
  /// Gives everything back.
  void Release() {
    held_.clear();
    pending_ = 0;
  }

 private:
  /// An answer up to this size is not counted: that costs more than it is worth.
  static constexpr size_t kFreeBytes = size_t{256} << 10;

  /// A cell, and a column, is an object of two members.
  static size_t SizeOf(std::span<const Item> items) {
    size_t bytes = 0;
    for (const Item& item : items) {
      bytes += 2 * item.column.size() + 3 * kJsonValueBytes;
      for (const Cell& cell : item.cells) bytes += 2 * cell.value.size() + 3 * kJsonValueBytes;
    }
    return bytes;
  }

  Call& call_;
  size_t pending_ = 0;
  std::vector<std::shared_ptr<void>> held_;
};

}  // namespace kvstore::server
