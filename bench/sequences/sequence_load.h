#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/load.h"
#include "bench/sequences/sequence_store.h"

namespace kvstore::bench {

/// The load of clients of user sequences: users, kinds of events, and a clock.
class SequenceLoad {
 public:
  SequenceLoad(uint64_t users, int threads);

  /// Appends the same events, of random users, to all stores.
  void Load(std::span<const std::unique_ptr<SequenceStore>> stores, uint64_t events);
  /// Returns DATA_LOSS unless all stores give the same answers.
  absl::Status CheckAlike(std::span<const std::unique_ptr<SequenceStore>> stores);

  // ---- operations, named as they are ----

  const char* Append(SequenceStore& store, int thread);
  /// Reads the newest 50 of a user and a kind.
  const char* ReadNewest(SequenceStore& store, int thread);
  /// Reads the newest 10 of a kind, of 100 users at once.
  const char* FanOut(SequenceStore& store, int thread);
  /// Sets ten fields of 100 bytes of a user's hash. The store must have hashes.
  const char* SetHash(SequenceStore& store, int thread);
  /// Reads all fields of a user's hash. The store must have hashes, and those of all users (SetHashes).
  const char* GetHash(SequenceStore& store, int thread);
  /// Sets the hashes of all users.
  void SetHashes(SequenceStore& store);

 private:
  using Random = std::mt19937_64;

  void SetHashOf(SequenceStore& store, int thread, std::string_view user);
  Random& RandomOf(int thread) { return random_[static_cast<size_t>(thread)]; }
  std::string_view User(Random& random) const { return users_[random() % users_.size()]; }
  uint64_t Now();

  std::vector<std::string> users_;
  std::vector<Random> random_;  // of each thread
  std::atomic<uint64_t> now_{0};
};

}  // namespace kvstore::bench
