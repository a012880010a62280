#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace kvstore::testing {

/// The seed of a randomised test: KV_TEST_SEED if it is set, else a new one. Printed, so that a failure can
/// be repeated.
uint64_t Seed(std::string_view test);

/// The number of rounds of a test: the environment variable `name`, else `otherwise`.
uint64_t Rounds(const char* name, uint64_t otherwise);

/// Random choices that are the same for the same seed on every machine. Copying copies the state.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  /// 0..n-1.
  uint64_t Below(uint64_t n) { return engine_() % n; }
  /// True once in n.
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  uint64_t Next() { return engine_(); }
  /// min..max bytes, of those with which an encoding of keys goes wrong if it does: 00 01 61 FE FF.
  std::string HostileBytes(size_t min, size_t max);

 private:
  std::mt19937_64 engine_;
};

}  // namespace kvstore::testing
