#include "reports/group_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kvstore_api/call_scope.h"
#include "reports/status_macros.h"

namespace kvstore::reports {
namespace {

absl::Status TooManyGroups(size_t max_groups) {
  return absl::ResourceExhaustedError(fmt::format(
      "group_by: the query has more than {} groups, which is the limit; filter, or group by fewer keys",
      max_groups));
}

}  // namespace

absl::Status QueryUse::TakeMemory(size_t bytes) {
  if ((memory_bytes += bytes) <= max_memory_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "the rows that the query reads, its aggregates and its answer take more than {} bytes of memory, "
      "which is the limit; ask for fewer metrics, filters or groups, longer steps or a shorter range",
      max_memory_bytes));
}

absl::Status QueryUse::TakeRead(uint64_t bytes) {
  if ((read_bytes += bytes) <= max_read_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "the query reads more than {} bytes, which is the limit; ask for fewer metrics or a shorter range",
      max_read_bytes));
}

Aggregate& Group::At(size_t step) {
  if (slots_[step] == 0) {
    cells_.emplace_back();
    slots_[step] = static_cast<uint32_t>(cells_.size());
  }
  return cells_[slots_[step] - 1];
}

absl::Status Group::Merge(Group&& other) {
  for (size_t step = 0; step < other.slots_.size(); ++step) {
    if (other.slots_[step] == 0) continue;
    KV_RETURN_IF_ERROR(At(step).Merge(std::move(other.cells_[other.slots_[step] - 1])));
  }
  return whole_.Merge(std::move(other.whole_));
}

absl::StatusOr<Group*> GroupTable::Find(uint32_t filter, std::span<const uint32_t> segments) {
  if (last_ != nullptr && last_key_.filter == filter && std::ranges::equal(last_key_.segments, segments)) {
    return last_;
  }
  last_key_.filter = filter;
  last_key_.segments.assign(segments.begin(), segments.end());
  auto found = groups_.find(last_key_);
  if (found == groups_.end()) {
    last_ = nullptr;
    if (groups_.size() == use_->max_groups) return TooManyGroups(use_->max_groups);
    KV_RETURN_IF_ERROR(use_->TakeMemory(sizeof(Group) + grid_->size() * sizeof(uint32_t)));
    found = groups_.emplace(last_key_, Group(grid_->size())).first;
  }
  return last_ = &found->second;
}

absl::Status GroupTable::Look(size_t additions) {
  constexpr size_t kAdditionsOfLook = 100'000;
  additions_ += additions;
  if (additions_ < kAdditionsOfLook) return absl::OkStatus();
  additions_ = 0;
  return CheckCall();
}

absl::Status GroupTable::Add(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                             MetricKind kind, const SeriesPoints& points, TimeSpan span) {
  const auto& times = points.times;
  const auto begin =
      static_cast<size_t>(std::lower_bound(times.begin(), times.end(), span.from) - times.begin());
  const auto end = static_cast<size_t>(std::lower_bound(times.begin(), times.end(), span.to) - times.begin());
  if (begin >= end) return absl::OkStatus();
  for (const uint32_t filter : filters) {
    KV_ASSIGN_OR_RETURN(Group* const found, Find(filter, group));
    KV_RETURN_IF_ERROR(Look(end - begin));
    const size_t cells_before = found->cells();
    const size_t whole_before = found->whole().memory();
    size_t outside = 0;  // memory of aggregates outside of themselves
    size_t step = 0;
    for (size_t i = begin; i < end; ++i) {
      step = grid_->IndexOf(times[i], step);
      Aggregate& cell = found->At(step);
      if (kind == MetricKind::kValue) {
        if (!points.numbers[i].is_integer() && !cell.sums_reals()) outside += sizeof(ExactSum);
        cell.Add(times[i], points.numbers[i], keep_.values);
        if (keep_.whole) found->whole().Add(times[i], points.numbers[i], keep_.whole_values);
        continue;
      }
      const size_t before = cell.memory();
      KV_RETURN_IF_ERROR(cell.AddSketch(kind, points.sketches[i]));
      outside += cell.memory() - before;
      if (keep_.whole) KV_RETURN_IF_ERROR(found->whole().AddSketch(kind, points.sketches[i]));
    }
    if (kind == MetricKind::kValue && keep_.values) outside += (end - begin) * sizeof(Number);
    KV_RETURN_IF_ERROR(TakeMemory(*found, cells_before, whole_before, outside));
  }
  return absl::OkStatus();
}

absl::Status GroupTable::TakeMemory(const Group& group, size_t cells_before, size_t whole_before,
                                    size_t outside) {
  const size_t bytes =
      (group.cells() - cells_before) * sizeof(Aggregate) + group.whole().memory() - whole_before + outside;
  return bytes == 0 ? absl::OkStatus() : use_->TakeMemory(bytes);
}

template <typename AddRun>
absl::Status GroupTable::AddRuns(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                                 std::span<const StepRun> runs, const AddRun& add) {
  if (runs.empty()) return absl::OkStatus();
  for (const uint32_t filter : filters) {
    KV_ASSIGN_OR_RETURN(Group* const found, Find(filter, group));
    KV_RETURN_IF_ERROR(Look(runs.back().end - runs.front().begin));
    const size_t cells_before = found->cells();
    for (size_t run = 0; run < runs.size(); ++run) {
      add(found->At(runs[run].step), run);
      if (keep_.whole) add(found->whole(), run);
    }
    if (found->cells() == cells_before) continue;
    KV_RETURN_IF_ERROR(use_->TakeMemory((found->cells() - cells_before) * sizeof(Aggregate)));
  }
  return absl::OkStatus();
}

absl::Status GroupTable::AddIntegers(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                                     std::span<const StepRun> runs, std::span<const int64_t> times,
                                     std::span<const int64_t> integers) {
  return AddRuns(filters, group, runs, [&](Aggregate& to, size_t run) {
    const size_t begin = runs[run].begin;
    const size_t end = runs[run].end;
    to.AddIntegers(integers.subspan(begin, end - begin), times[end - 1]);
  });
}

absl::Status GroupTable::AddSums(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                                 std::span<const StepRun> runs, std::span<const Int128> sums) {
  return AddRuns(filters, group, runs,
                 [&](Aggregate& to, size_t run) { to.AddSum(runs[run].end - runs[run].begin, sums[run]); });
}

absl::Status GroupTable::AddSummaries(std::span<const uint32_t> filters, std::span<const uint32_t> group,
                                      std::span<const int64_t> times, std::span<const Summary> summaries,
                                      TimeSpan span) {
  const auto begin =
      static_cast<size_t>(std::lower_bound(times.begin(), times.end(), span.from) - times.begin());
  const auto end = static_cast<size_t>(std::lower_bound(times.begin(), times.end(), span.to) - times.begin());
  if (begin >= end) return absl::OkStatus();
  for (const uint32_t filter : filters) {
    KV_ASSIGN_OR_RETURN(Group* const found, Find(filter, group));
    KV_RETURN_IF_ERROR(Look(end - begin));
    const size_t cells_before = found->cells();
    const size_t whole_before = found->whole().memory();
    size_t outside = 0;  // memory of aggregates outside of themselves
    size_t step = 0;
    for (size_t i = begin; i < end; ++i) {
      step = grid_->IndexOf(times[i], step);
      Aggregate& cell = found->At(step);
      if (summaries[i].real_count > 0 && !cell.sums_reals()) outside += sizeof(ExactSum);
      cell.Add(summaries[i]);
      if (keep_.whole) found->whole().Add(summaries[i]);
    }
    KV_RETURN_IF_ERROR(TakeMemory(*found, cells_before, whole_before, outside));
  }
  return absl::OkStatus();
}

absl::Status GroupTable::Merge(GroupTable&& other) {
  while (!other.groups_.empty()) {
    auto node = other.groups_.extract(other.groups_.begin());
    const auto found = groups_.find(node.key());
    if (found == groups_.end()) {
      if (groups_.size() == use_->max_groups) return TooManyGroups(use_->max_groups);
      groups_.insert(std::move(node));
    } else {
      KV_RETURN_IF_ERROR(found->second.Merge(std::move(node.mapped())));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::reports
