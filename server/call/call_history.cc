#include "server/call/call_history.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/thread_number.h"

namespace kvstore::server {
namespace {

constexpr size_t kParts = 4;  // of each doubling

/// Returns the number of the count for so many microseconds: below kParts one each, then four a doubling.
size_t CountOf(uint64_t us) {
  if (us < kParts) return us;
  const auto doubling = static_cast<size_t>(std::bit_width(us)) - 1;
  return kParts * (doubling - 1) + (us >> (doubling - 2) & (kParts - 1));
}

/// Returns the largest number of microseconds that has this count.
uint64_t LargestOf(size_t count) {
  if (count < kParts) return count;
  const size_t doubling = count / kParts + 1;
  return ((kParts + count % kParts + 1) << (doubling - 2)) - 1;
}

}  // namespace

void CallHistory::Counts::Add(const Counts& other) {
  for (size_t i = 0; i < took.size(); ++i) took[i] += other.took[i];
  errors += other.errors;
}

CallHistory::Figures CallHistory::Counts::Sum() const {
  Figures figures{.errors = errors};
  for (const uint32_t count : took) figures.calls += count;
  const auto quantile = [&](uint64_t percent) -> uint64_t {
    const uint64_t wanted = (figures.calls * percent + 99) / 100;
    uint64_t seen = 0;
    for (size_t i = 0; i < took.size(); ++i) {
      seen += took[i];
      if (seen >= wanted) return LargestOf(i);
    }
    return 0;
  };
  if (figures.calls == 0) return figures;
  figures.p50_us = quantile(50);
  figures.p99_us = quantile(99);
  return figures;
}

void CallHistory::Count(Operation operation, std::string_view dataset, double seconds, bool failed) {
  const auto us = static_cast<uint64_t>(std::max(0.0, seconds) * 1e6);
  const size_t count = std::min(CountOf(us), Counts::kCounts - 1);
  const auto add = [&](Counts& counts) {
    ++counts.took[count];
    if (failed) ++counts.errors;
  };
  Stripe& stripe = stripes_[ThreadNumber() % stripes_.size()];
  const MutexLock lock(stripe.mutex);
  add(stripe.operations[static_cast<size_t>(operation)]);
  if (dataset.empty()) return;
  auto found = stripe.datasets.find(dataset);
  if (found == stripe.datasets.end()) {
    const bool fits = stripe.datasets.size() < kMostDatasets;
    found = stripe.datasets.try_emplace(std::string(fits ? dataset : kOthers)).first;
  }
  add(found->second);
}

CallHistory::Step CallHistory::Take() {
  std::array<Counts, kOperationCount> operations;
  ByDataset datasets;
  for (Stripe& stripe : stripes_) {
    ByDataset taken;
    const MutexLock lock(stripe.mutex);
    for (size_t i = 0; i < operations.size(); ++i) operations[i].Add(std::exchange(stripe.operations[i], {}));
    taken.swap(stripe.datasets);
    for (const auto& [name, counts] : taken) datasets[name].Add(counts);
  }
  Step step;
  for (size_t i = 0; i < operations.size(); ++i) {
    const Figures figures = operations[i].Sum();
    if (figures.calls > 0) step.operations.emplace_back(kOperations[i].name, figures);
  }
  // The stripes may tell more datasets apart than a step names: those with the most calls keep their names.
  std::vector<std::pair<uint64_t, std::string>> ranks;
  for (const auto& [name, counts] : datasets) ranks.emplace_back(counts.Sum().calls, name);
  std::sort(ranks.rbegin(), ranks.rend());
  for (size_t i = kMostDatasets; i < ranks.size(); ++i) {
    if (ranks[i].second == kOthers) continue;
    datasets[std::string(kOthers)].Add(datasets[ranks[i].second]);
    datasets.erase(ranks[i].second);
  }
  for (const auto& [name, counts] : datasets) step.datasets.emplace_back(name, counts.Sum());
  return step;
}

void CallHistory::Advance(Clock::time_point now) {
  const auto ms = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
  const auto step_ms = static_cast<uint64_t>(kStep.count());
  const uint64_t begin = ms - ms % step_ms;
  if (begin_ms_ == begin) return;
  const uint64_t ended = std::exchange(begin_ms_, begin);
  // The first time, and where the clock was set back, there is no step that has ended.
  if (ended == 0 || ended > begin) return;
  Step step = Take();
  step.begin_ms = ended;
  const MutexLock lock(mutex_);
  while (!steps_.empty() && (steps_.size() >= kSteps || steps_.front().begin_ms + kSteps * step_ms <= ended))
    steps_.pop_front();
  // After a clock that was set back, steps of the future would never be told.
  while (!steps_.empty() && steps_.back().begin_ms >= ended) steps_.pop_back();
  steps_.push_back(std::move(step));
}

std::vector<CallHistory::Step> CallHistory::After(uint64_t begin_ms) const {
  const MutexLock lock(mutex_);
  // Whoever was told of later steps was so before the clock was set back.
  if (!steps_.empty() && begin_ms > steps_.back().begin_ms) begin_ms = 0;
  const auto first = std::find_if(steps_.begin(), steps_.end(),
                                  [begin_ms](const Step& step) { return step.begin_ms > begin_ms; });
  return {first, steps_.end()};
}

}  // namespace kvstore::server
