#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/report.h"

namespace kvstore::bench {

struct SequencesOptions {
  uint64_t events = 1'000'000;
  uint64_t users = 10'000;
  std::string dir;  ///< Where the store is made; empty: a temporary place.
};

/// User sequences: events (row = user, column = kind, timestamp = when, value = what) appended in order of
/// time, then the newest 50 of a kind read, for users picked at random.
absl::StatusOr<Report> BenchSequences(const SequencesOptions& options);

}  // namespace kvstore::bench
