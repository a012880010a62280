#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "migration/copier.h"

namespace kvstore::migration {

/// Compares both sides in full, while clients write: each unit's cells, not their number. A unit that differs
/// is looked at again, with nothing being copied, until no write to it is on its way: what differs then is a
/// difference, and is copied again. Thread-safe.
class Verifier {
 public:
  /// repairs  Differences are copied again; else they are only counted, nothing is written on either side,
  /// and units
  ///          with a write on its way are passed over: no Drainer need run then.
  Verifier(Copier& copier, bool repairs) : copier_(copier), repairs_(repairs) {}

  /// Compares the units of a range; where it repairs, a Drainer must run meanwhile. CANCELLED when `stop`
  /// says so.
  absl::Status Compare(const UnitRange& range, const std::function<bool()>& stop);

  uint64_t compared() const { return compared_.load(std::memory_order_relaxed); }
  uint64_t differences() const { return differences_.load(std::memory_order_relaxed); }
  uint64_t repaired() const { return repaired_.load(std::memory_order_relaxed); }
  /// Of the differences: units that the copy has and the truth has not, at all.
  uint64_t only_in_copy() const { return only_in_copy_.load(std::memory_order_relaxed); }
  /// Keys of the first units that differ, at most kExamples. After the last Compare.
  const std::vector<std::string>& examples() const { return examples_; }

  static constexpr size_t kExamples = 5;

 private:
  absl::Status LookAgain(std::vector<std::string> suspects, const std::function<bool()>& stop);

  /// Of units that differ, with what either side has.
  void Note(const Unit& truth, const Unit& copy);

  Copier& copier_;
  const bool repairs_;
  std::atomic<uint64_t> only_in_copy_{0};
  std::mutex examples_mutex_;
  std::vector<std::string> examples_;  // guarded by examples_mutex_
  std::atomic<uint64_t> compared_{0};
  std::atomic<uint64_t> differences_{0};
  std::atomic<uint64_t> repaired_{0};
};

}  // namespace kvstore::migration
