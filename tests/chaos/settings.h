#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace kvstore::testing::chaos {

/// The settings of a run, from environment variables:
///
///   KV_TEST_SEED       the seed of all random choices; printed, so that a run can be repeated as far as the
///   timing of
///                      processes allows
///   KV_TEST_SECONDS    for how long operators and faults disturb [45]
///   KV_CHAOS_BOUND     the seconds that each step of the recovery may take afterwards [240]
///   KV_CHAOS_ONLY      comma-separated names of the operators' actions and faults to run
///   KV_CHAOS_WITHOUT   comma-separated names of those to leave out
///   KV_CHAOS_KEEP      a folder for the logs of the run and of the servers, which are removed otherwise
///
/// An unknown name is an error: std::runtime_error, with the names that exist.
struct Settings {
  uint64_t seed = 0;
  std::chrono::seconds length{0};
  std::chrono::seconds bound{0};
  std::set<std::string, std::less<>> only;
  std::set<std::string, std::less<>> without;
  std::string keep;

  static Settings FromEnvironment();
  bool Has(std::string_view name) const {
    return (only.empty() || only.contains(name)) && !without.contains(name);
  }
};

}  // namespace kvstore::testing::chaos
