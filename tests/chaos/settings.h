#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace kvstore::testing::chaos {

/// How a run goes, from the environment:
///
///   KV_TEST_SEED       what is chosen; printed, so that a run can be repeated as far as processes allow
///   KV_TEST_SECONDS    how long operators and faults disturb [45]
///   KV_CHAOS_BOUND     seconds in which all must be in order again afterwards, for each step of that [240]
///   KV_CHAOS_ONLY      comma-separated names of operators and faults: only these
///   KV_CHAOS_WITHOUT   ... all but these
///   KV_CHAOS_KEEP      a folder for the log of the run and those of the servers; else they go with the test
///
/// An unknown name is an error: std::runtime_error names those that there are.
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
