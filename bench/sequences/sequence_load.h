#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load.h"
#include "bench/sequence_store.h"

namespace kvstore::bench {

/// What clients of user sequences do: users, kinds of events, and time that goes on.
class SequenceLoad {
 public:
  SequenceLoad(uint64_t users, int threads);

  /// The same events, of random users, to all stores.
  void Load(std::span<const std::unique_ptr<SequenceStore>> stores, uint64_t events);
  /// DATA_LOSS unless stores that were told the same say the same.
  absl::Status CheckAlike(std::span<const std::unique_ptr<SequenceStore>> stores);

  // ---- operations, named as they are ----

  const char* Append(SequenceStore& store, int thread);
  /// The newest 50 of a user and a kind.
  const char* ReadNewest(SequenceStore& store, int thread);
  /// The newest 10 of a kind, of 100 users at once.
  const char* FanOut(SequenceStore& store, int thread);

 private:
  using Random = std::mt19937_64;

  Random& RandomOf(int thread) { return random_[static_cast<size_t>(thread)]; }
  std::string_view User(Random& random) const { return users_[random() % users_.size()]; }
  uint64_t Now();

  std::vector<std::string> users_;
  std::vector<Random> random_;  // of each thread
  std::atomic<uint64_t> now_{0};
};

}  // namespace kvstore::bench
