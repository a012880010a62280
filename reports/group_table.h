#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "reports/aggregate.h"
#include "reports/chunk_types.h"
#include "reports/point_block.h"
#include "reports/steps.h"

namespace kvstore::reports {

/// Counts a query's memory and reads, by all of its threads, up to their limits.
struct QueryUse {
  std::atomic<size_t> memory_bytes{0};
  std::atomic<uint64_t> read_bytes{0};
  size_t max_memory_bytes = 0;
  uint64_t max_read_bytes = 0;
  size_t max_groups = 0;

  /// RESOURCE_EXHAUSTED with the figure if the limit is passed.
  absl::Status TakeMemory(size_t bytes);
  /// Memory that was taken is free again.
  void FreeMemory(size_t bytes) { memory_bytes -= bytes; }
  absl::Status TakeRead(uint64_t bytes);
};

/// The aggregates of one group: of each step that has points, and of the whole range.
class Group {
 public:
  explicit Group(size_t steps) : slots_(steps, 0) {}

  /// The aggregate of a step; made if there is none.
  Aggregate& At(size_t step);
  /// Null if the step has no points.
  const Aggregate* Find(size_t step) const { return slots_[step] == 0 ? nullptr : &cells_[slots_[step] - 1]; }
  Aggregate& whole() { return whole_; }
  const Aggregate& whole() const { return whole_; }
  size_t steps() const { return slots_.size(); }
  size_t cells() const { return cells_.size(); }
  absl::Status Merge(Group&& other);

 private:
  std::vector<uint32_t> slots_;  // 1 + the index in cells_; 0: none
  std::vector<Aggregate> cells_;
  Aggregate whole_;
};

/// The groups of one metric. Externally synchronised.
class GroupTable {
 public:
  struct Key {
    uint32_t filter = 0;
    std::vector<uint32_t> segments;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Groups = std::map<Key, Group>;

  struct Keep {
    bool values = false;        ///< The values of each step, for percentiles.
    bool whole = false;         ///< The aggregate of the whole range.
    bool whole_values = false;  ///< Its values.
    bool sums_only = false;     ///< Neither of steps nor of the whole more than count, sum and average.
  };
  GroupTable(const StepGrid& grid, Keep keep, QueryUse& use) : grid_(&grid), keep_(keep), use_(&use) {}
  GroupTable(GroupTable&&) = default;
  GroupTable& operator=(GroupTable&&) = default;

  /// Adds the points of a series that lie in [from, to) to the groups of all filters that it matches.
  absl::Status Add(std::span<const uint32_t> filters, std::span<const uint32_t> group, MetricKind kind,
                   const SeriesPoints& points, TimeSpan span);
  /// The same for a series whose points are integers, of a table that keeps no values.
  ///
  /// runs      of the times, as StepGrid::Divide finds them.
  /// integers  one for each time.
  absl::Status AddIntegers(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                           std::span<const StepRun> runs, std::span<const int64_t> times,
                           std::span<const int64_t> integers);
  /// The same for a table that keeps sums only, with the sum of each run.
  absl::Status AddSums(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                       std::span<const StepRun> runs, std::span<const Int128> sums);
  /// The same for values of a series that were summed before, over stretches of time that each lie in one
  /// step of the grid and wholly in or outside of [from, to).
  ///
  /// times  the starts of these, ascending.
  absl::Status AddSummaries(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                            std::span<const int64_t> times, std::span<const Summary> summaries,
                            TimeSpan span);
  absl::Status Merge(GroupTable&& other);
  const Groups& groups() const { return groups_; }
  const StepGrid& grid() const { return *grid_; }
  bool keeps_values() const { return keep_.values || keep_.whole_values; }
  bool keeps_sums_only() const { return keep_.sums_only; }

 private:
  /// Finds a group, or begins it.
  absl::StatusOr<Group*> Find(uint32_t filter, std::span<const uint32_t> segments);
  /// Counts what a group has taken since it had so many cells and its whole so much memory, beside what cells
  /// have outside of themselves.
  absl::Status TakeMemory(const Group& group, size_t cells_before, size_t whole_before, size_t outside);
  /// Adds runs of times to the groups of all filters that a series matches: `add` is given an aggregate and
  /// the index of a run.
  template <typename AddRun>
  absl::Status AddRuns(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                       std::span<const StepRun> runs, const AddRun& add);
  /// Looks now and then at whether the call is over: a series may have many points, and match many filters.
  absl::Status Look(size_t additions);

  const StepGrid* grid_;
  Keep keep_;
  QueryUse* use_;
  size_t additions_ = 0;  // since the last look
  Groups groups_;
  // Neighbouring series are mostly of the same group: that which Find has returned last, null before.
  Group* last_ = nullptr;
  Key last_key_;
};

}  // namespace kvstore::reports
