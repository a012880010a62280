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
  explicit Verifier(Copier& copier) : copier_(copier) {}

  /// Compares the units of a range; a Drainer must run meanwhile. CANCELLED when `stop` says so.
  absl::Status Compare(const UnitRange& range, const std::function<bool()>& stop);

  uint64_t compared() const { return compared_.load(std::memory_order_relaxed); }
  uint64_t differences() const { return differences_.load(std::memory_order_relaxed); }
  uint64_t repaired() const { return repaired_.load(std::memory_order_relaxed); }

 private:
  absl::Status LookAgain(std::vector<std::string> suspects, const std::function<bool()>& stop);

  Copier& copier_;
  std::atomic<uint64_t> compared_{0};
  std::atomic<uint64_t> differences_{0};
  std::atomic<uint64_t> repaired_{0};
};

}  // namespace kvstore::migration
