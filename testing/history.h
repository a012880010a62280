#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kvstore::testing {

/// A history of what clients did and were told, and the check that it is linearizable: that one order of all
/// operations explains every answer. Each key is a register of its own. (The search is Wing and Gong's, with
/// the memory of Lowe, as in Porcupine.) An operation that was not answered, or whose outcome is unknown, may
/// have happened at any time after it began, or never.
///
/// The history is in memory that child processes share, so that it has what a child did before it was killed.
/// Thread-safe.
class History {
 public:
  /// keys      The number of keys; operations name them by 0 to keys - 1.
  /// capacity  The largest number of operations.
  explicit History(uint32_t keys, size_t capacity = 400'000);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  enum class Kind : uint8_t { kWrite, kDelete, kRead };
  static constexpr uint64_t kNone = 0;  ///< The value of a read that found nothing.

  /// Returns a value that no other write has.
  uint64_t NewValue() { return shared_->values.fetch_add(1) + 1; }

  /// Records that an operation begins, and returns its number. Throws std::runtime_error if the history is
  /// full.
  ///
  /// value  What a write writes; must be a NewValue.
  size_t Begin(uint32_t key, Kind kind, uint64_t value = kNone);
  /// Records that the operation was answered.
  ///
  /// value  What a read has read.
  void End(size_t operation, uint64_t value = kNone);
  /// Records that a write is known to have happened by `time`, which may be earlier than its answer.
  void EndBy(size_t operation, std::chrono::steady_clock::time_point time);
  /// Records that the operation certainly did not happen.
  void Fail(size_t operation);
  /// Whether the room that is left is reserved for calls in flight, so that no new ones should begin.
  bool full() const { return shared_->count.load() + kSlack >= capacity_; }
  size_t size() const;

  /// Returns the first key whose operations no order explains, and those around the problem; nullopt if there
  /// is none.
  std::optional<std::string> Check() const;

 private:
  struct Operation {
    uint64_t begin;
    uint64_t value;
    std::atomic<uint64_t> end;  // 0: not answered; 1: did not happen
    uint32_t key;
    Kind kind;
  };
  struct Shared {
    std::atomic<size_t> count;
    std::atomic<uint64_t> values;
  };

  static constexpr size_t kSlack = 256;

  const uint32_t keys_;
  const size_t capacity_;
  const size_t bytes_;
  Shared* shared_ = nullptr;
  Operation* operations_ = nullptr;
};

}  // namespace kvstore::testing
