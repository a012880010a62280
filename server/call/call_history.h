#pragma once

#include <absl/base/thread_annotations.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/call/operation.h"

namespace kvstore::server {

/// The calls of the last hour, for people who look: in each ten seconds, how many there were of each
/// operation and on each dataset, how many failed, and how long they took. It takes a few megabytes at most.
/// Thread-safe.
class CallHistory {
 public:
  using Clock = std::chrono::system_clock;

  static constexpr std::chrono::milliseconds kStep{10'000};
  static constexpr size_t kSteps = 360;
  /// In one step so many datasets are told apart, of more than so many not always those with the most calls;
  /// the others are one, with the name kOthers.
  static constexpr size_t kMostDatasets = 100;
  static constexpr std::string_view kOthers = "(others)";

  struct Figures {
    uint64_t calls = 0;
    uint64_t errors = 0;  ///< Those among `calls` that failed, with any code.
    uint64_t p50_us = 0;  ///< Half of the calls took at most so long, within 25 %.
    uint64_t p99_us = 0;
  };
  using Series = std::vector<std::pair<std::string, Figures>>;
  /// Ten seconds. Operations and datasets without calls are left out.
  struct Step {
    uint64_t begin_ms = 0;  ///< Since 1970; a multiple of kStep.
    Series operations;      ///< By their names in backend_api/operations.def.
    Series datasets;
  };

  /// Counts a call that has ended.
  ///
  /// dataset  That it was about; empty: none that there is.
  void Count(Operation operation, std::string_view dataset, double seconds, bool failed);
  /// Ends the step that is under way if its time is over. To be called about once a second, by one thread.
  void Advance(Clock::time_point now);
  /// Returns the steps that ended after the one that began at this time, the oldest first; all of them if the
  /// last one began before that, because the clock was set back.
  std::vector<Step> After(uint64_t begin_ms) const;

 private:
  /// How many calls took how long: four counts for each doubling of the microseconds.
  struct Counts {
    void Add(const Counts& other);
    Figures Sum() const;

    static constexpr size_t kCounts = 112;  // up to nine minutes; the last one has what took longer
    std::array<uint32_t, kCounts> took{};
    uint32_t errors = 0;
  };
  using ByDataset = std::map<std::string, Counts, std::less<>>;
  struct alignas(64) Stripe {
    Mutex mutex;
    std::array<Counts, kOperationCount> operations ABSL_GUARDED_BY(mutex);
    ByDataset datasets ABSL_GUARDED_BY(mutex);
  };

  /// Returns what was counted in all stripes, and begins anew.
  Step Take();

  std::array<Stripe, 8> stripes_;
  uint64_t begin_ms_ = 0;  // of the step under way; touched by Advance only
  mutable Mutex mutex_;
  std::deque<Step> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kvstore::server
