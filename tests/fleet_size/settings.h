#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

/// How large the simulated fleet is: small among the other tests, at its full size where KV_FLEET_SIZE is
/// "full" (./dev fleet-size).
namespace kvstore::testing::fleet_size {

struct Size {
  bool full = false;
  size_t sessions = 300;  ///< Clients that watch the map.
  size_t hosts = 40;      ///< MySQL servers, two to a pair.
  size_t ranges = 2'000;  ///< Entries of the map.
};

inline Size SizeOfRun() {
  const char* const wanted = std::getenv("KV_FLEET_SIZE");
  if (wanted == nullptr || std::string_view(wanted) != "full") return {};
  return {.full = true, .sessions = 10'000, .hosts = 1'000, .ranges = 65'536};
}

}  // namespace kvstore::testing::fleet_size
