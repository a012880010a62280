#include "tests/chaos/registers.h"

#include <algorithm>
#include <set>

namespace kvstore::testing::chaos {

Registers::Registers(uint32_t keys) : history_(keys, 2'000'000), writes_(keys) {}

Registers::Pending Registers::Begin(uint32_t key, History::Kind kind, uint64_t value) {
  const MutexLock lock(mutex_);
  std::vector<Write>& writes = writes_.at(key);
  writes.push_back({.value = value, .begin = Clock::now()});
  return {key, value, history_.Begin(key, kind, value), writes.size() - 1};
}

Registers::Pending Registers::BeginWrite(uint32_t key) {
  return Begin(key, History::Kind::kWrite, history_.NewValue());
}
Registers::Pending Registers::BeginDelete(uint32_t key) { return Begin(key, History::Kind::kDelete, kNone); }

void Registers::SucceedBy(const Pending& pending, Clock::time_point time) {
  history_.EndBy(pending.operation, time);
  const MutexLock lock(mutex_);
  writes_[pending.key][pending.nth].end = time;
}

void Registers::Fail(const Pending& pending) {
  history_.Fail(pending.operation);
  const MutexLock lock(mutex_);
  writes_[pending.key][pending.nth].failed = true;
}

void Registers::MayHaveLost(uint32_t key, Clock::time_point since) {
  const MutexLock lock(mutex_);
  // Finds the latest write that had ended by `since`. Writes that had ended before it began cannot come back;
  // those whose outcome is unknown may have happened late.
  std::optional<Clock::time_point> latest;
  for (const Write& write : writes_[key]) {
    if (!write.failed && write.end && *write.end < since)
      latest = std::max(latest.value_or(write.begin), write.begin);
  }
  std::set<uint64_t> values;
  if (!latest) values.insert(kNone);
  for (const Write& write : writes_[key]) {
    if (write.failed) continue;
    if (!latest || !write.end || *write.end >= *latest) values.insert(write.value);
  }
  for (const uint64_t value : values) {
    // A write that is never answered may happen at any time from now on, or never.
    history_.Begin(key, value == kNone ? History::Kind::kDelete : History::Kind::kWrite, value);
  }
}

}  // namespace kvstore::testing::chaos
