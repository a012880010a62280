#include "tests/support/random.h"

#include <fmt/format.h>

#include <cstdlib>

namespace kvstore::testing {

uint64_t Seed(std::string_view test) {
  const char* given = std::getenv("KV_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  fmt::print("{}: seed {} (repeat with KV_TEST_SEED={})\n", test, seed, seed);
  std::fflush(stdout);
  return seed;
}

uint64_t Rounds(const char* name, uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

std::string Random::HostileBytes(size_t min, size_t max) {
  constexpr std::string_view kAlphabet("\x00\x01\x61\xFE\xFF", 5);
  std::string bytes;
  for (size_t n = min + Below(max - min + 1); n > 0; --n) bytes.push_back(kAlphabet[Below(kAlphabet.size())]);
  return bytes;
}

}  // namespace kvstore::testing
