#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/call/call.h"

namespace kvstore::server::resp {

/// The memory that an answer takes while it is made: what was read for it, and its text. It counts against
/// the caller's share of the bytes in flight, so that large answers that are made at the same time do not
/// exceed the share by all of them. Externally synchronised.
class AnswerMemory {
 public:
  /// call  Must outlive this, and be admitted before anything is held.
  explicit AnswerMemory(Call& call) : call_(call) {}

  /// Holds so much more. RESOURCE_EXHAUSTED, marked as refused, if what the caller has in flight beside this
  /// answer fills its share; an answer that is alone may be larger than the share.
  absl::Status Hold(size_t bytes) {
    bytes_ += bytes;
    const size_t more = bytes_ - counted_;
    if (more < kFreeBytes) return absl::OkStatus();
    counted_ = bytes_;
    if (auto held = call_.ReserveBytes(more)) {
      held_.push_back(std::move(held));
      return absl::OkStatus();
    }
    // The bytes that this answer itself holds are no reason to refuse it.
    held_.clear();
    if (!call_.CallerHasRoom()) return MarkRefused(TooManyInFlightError());
    held_.push_back(call_.HoldBytes(bytes_));
    return absl::OkStatus();
  }

  /// Returns how much was to be held so far.
  size_t bytes() const { return bytes_; }

 private:
  /// An answer up to this size is not counted while it is made: that costs more than it is worth.
  static constexpr size_t kFreeBytes = size_t{256} << 10;

  Call& call_;
  size_t bytes_ = 0;
  size_t counted_ = 0;  // of bytes_
  std::vector<std::shared_ptr<void>> held_;
};

}  // namespace kvstore::server::resp
