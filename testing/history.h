#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kvstore::bench {

/// What clients did and were told, and whether one order of all of it explains what they were told: each key
/// is a register, and must be linearizable (Wing and Gong's search, with the memory of Lowe; as in
/// Porcupine). An operation that was not answered, or whose outcome is unknown, may have happened at any time
/// after it began, or never.
///
/// Lies in memory that a child process shares, so that what it did is known when it was killed. Thread-safe.
class History {
 public:
  explicit History(uint32_t keys, size_t capacity = 400'000);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  enum class Kind : uint8_t { kWrite, kDelete, kRead };
  static constexpr uint64_t kNone = 0;  ///< What a read found that found nothing.

  /// A value that no other write has.
  uint64_t NewValue() { return shared_->values.fetch_add(1) + 1; }

  /// An operation begins. `value` of a write; must be NewValue.
  size_t Begin(uint32_t key, Kind kind, uint64_t value = kNone);
  /// It was answered. `value` of a read.
  void End(size_t operation, uint64_t value = kNone);
  /// A write that is known to have happened by an earlier time than that of its answer.
  void EndBy(size_t operation, std::chrono::steady_clock::time_point time);
  /// It certainly did not happen.
  void Fail(size_t operation);
  /// Whether there is room for some operations only, of calls that are under way.
  bool full() const { return shared_->count.load() + kSlack >= capacity_; }
  size_t size() const;

  /// What is wrong with one key; none if all is well.
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

}  // namespace kvstore::bench
