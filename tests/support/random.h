#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace kvstore::testing {

/// Returns the seed of a randomised test: KV_TEST_SEED if it is set, else a new one. Prints it, so that a
/// failure can be repeated.
uint64_t Seed(std::string_view test);

/// Returns the number of rounds of a test: the environment variable `name` if it is set, else `otherwise`.
uint64_t Rounds(const char* name, uint64_t otherwise);

/// Random choices that are the same for the same seed on every machine. Copying copies the state.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// Returns 0 to n - 1.
  uint64_t Below(uint64_t n) { return engine_() % n; }
  /// Returns true once in n times, on average.
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  uint64_t Next() { return engine_(); }
  /// Returns min to max bytes, of those that break a faulty encoding of keys: 00 01 61 FE FF.
  std::string HostileBytes(size_t min, size_t max);

 private:
  std::mt19937_64 engine_;
};

}  // namespace kvstore::testing
