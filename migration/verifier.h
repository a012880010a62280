#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "migration/copier.h"

namespace kvstore::migration {

/// Compares the content of all units of both sides while clients write. A unit that differs is read again,
/// with nothing being copied meanwhile, until no write to it is in flight: if it still differs then, it
/// counts as a difference, and is copied again. Thread-safe.
class Verifier {
 public:
  enum class Mode : uint8_t {
    kRepair,  ///< Differences are copied again.
    /// They are only counted, and nothing is written to either side. Units with a write in flight are
    /// skipped, unless the copy has the newer content.
    kCount,
    /// They are only counted. Units with a write in flight are read again a few times, and then skipped.
    /// Nothing is read again while the dirty log is long: RESOURCE_EXHAUSTED.
    kWatch,
  };
  Verifier(Copier& copier, Mode mode)
      : copier_(copier), repairs_(mode == Mode::kRepair), watches_(mode == Mode::kWatch) {}

  /// Compares these units. A verifier that repairs, or watches, needs a running Drainer. CANCELLED once
  /// `stop` returns true.
  absl::Status CompareUnits(std::vector<std::string> units, const std::function<bool()>& stop);
  /// As CompareUnits, for all units of a range.
  absl::Status Compare(const UnitRange& range, const std::function<bool()>& stop);

  /// How much CompareUnits has read of the truth.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t compared() const { return compared_.load(std::memory_order_relaxed); }
  uint64_t differences() const { return differences_.load(std::memory_order_relaxed); }
  uint64_t repaired() const { return repaired_.load(std::memory_order_relaxed); }
  /// How many of the differences are units that only the copy has.
  uint64_t only_in_copy() const { return only_in_copy_.load(std::memory_order_relaxed); }
  /// Keys of the first units that differ, at most kExamples; of a verifier that watches, of all.
  std::vector<std::string> examples() const {
    const MutexLock lock(examples_mutex_);
    return examples_;
  }

  static constexpr size_t kExamples = 5;

 private:
  /// Reads units that differed again, until they are the same, or differ without a write in flight.
  absl::Status Recheck(std::vector<std::string> suspects, const std::function<bool()>& stop);

  /// Counts a unit that differs, given what either side has, and keeps its key as an example.
  void RecordDifference(const Unit& truth, const Unit& copy);

  Copier& copier_;
  const bool repairs_;
  const bool watches_;
  std::atomic<uint64_t> only_in_copy_{0};
  mutable Mutex examples_mutex_;
  std::vector<std::string> examples_ ABSL_GUARDED_BY(examples_mutex_);
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> compared_{0};
  std::atomic<uint64_t> differences_{0};
  std::atomic<uint64_t> repaired_{0};
};

}  // namespace kvstore::migration
