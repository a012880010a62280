#include "migration/copier.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "backend_api/scan_budget.h"
#include "backend_api/unit_key.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::migration {
namespace {

/// How many units are read and replaced together.
constexpr size_t kTogether = 500;
/// How long the drainer sleeps when the log is empty or it is paused.
constexpr std::chrono::milliseconds kIdle{5};
/// How many cells one page of a scan examines without finding anything to copy.
constexpr uint64_t kPageScanBudget = 200'000;

}  // namespace

void CopyLock::Lock(bool exclusive) {
  MutexLock lock(mutex_);
  const uint64_t ticket = next_++;
  while (serving_ != ticket || exclusive_ || (exclusive && holders_ != 0)) lock.Wait(changed_);
  ++serving_;
  ++holders_;
  exclusive_ = exclusive;
  changed_.notify_all();
}

void CopyLock::Unlock() {
  const MutexLock lock(mutex_);
  --holders_;
  exclusive_ = false;
  changed_.notify_all();
}

absl::Status Copier::Copy(std::span<const std::string> keys) {
  while (!keys.empty()) {
    const auto part = keys.first(std::min(keys.size(), kTogether));
    const auto units = from_.units.Read(part, WallClockMs());
    if (!units.ok()) return units.status();
    Reached("copy.read");
    if (auto status = Replace(*units); !status.ok()) return status;
    keys = keys.subspan(part.size());
  }
  return absl::OkStatus();
}

absl::Status Copier::Replace(std::span<const Unit> units) {
  if (check_) {
    if (auto status = check_(); !status.ok()) return status;
  }
  return to_.writer.Replace(epoch_, units, /*fresh=*/false);
}

absl::Status Copier::CopyRow(const std::string& row) {
  const UnitRange range{.start = row, .end = EndOf(row)};
  // Scans the whole row, because reading its columns one by one would pass over deleted cells again and
  // again.
  const auto all = [&](UnitReader& side,
                       const std::function<absl::Status(std::vector<Unit>&)>& work) -> absl::Status {
    auto scan = side.Scan(range, WallClockMs());
    if (!scan.ok()) return scan.status();
    for (;;) {
      auto page = (*scan)->Next();
      if (!page.ok()) return page.status();
      if (page->empty()) return absl::OkStatus();
      if (auto status = work(*page); !status.ok()) return status;
    }
  };
  // Columns that the copy has and the truth lacks are removed. Columns that are written meanwhile have log
  // entries of their own.
  std::set<std::string> surplus;
  absl::Status status = all(to_.units, [&](std::vector<Unit>& page) {
    for (Unit& unit : page) surplus.insert(std::move(unit.key));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  status = all(from_.units, [&](std::vector<Unit>& page) {
    for (const Unit& unit : page) surplus.erase(unit.key);
    return Replace(page);
  });
  if (!status.ok()) return status;
  std::vector<Unit> absent;
  for (auto key = surplus.begin(); key != surplus.end();) {
    absent.push_back({*key++, {}});
    if (absent.size() < kTogether && key != surplus.end()) continue;
    if (status = Replace(absent); !status.ok()) return status;
    absent.clear();
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Copier::Drain() {
  const auto exclusive = lock_.Exclude();
  const auto entries = from_.changes.ReadDirty(listed_);
  if (!entries.ok()) return entries.status();
  if (entries->empty()) return 0;
  Reached("drain.listed");
  std::set<std::string> units;
  std::set<std::string> rows;
  for (const DirtyEntry& entry : *entries) {
    (IsUnitKey(shape_, entry.key) ? units : rows).insert(entry.key);
  }
  for (const std::string& row : rows) {
    if (auto status = CopyRow(row); !status.ok()) return status;
    // The row's columns have just been copied.
    std::erase_if(units, [&](const std::string& unit) { return unit.starts_with(row); });
  }
  if (auto status = Copy(std::vector<std::string>(units.begin(), units.end())); !status.ok()) return status;
  Reached("drain.replaced");
  if (auto status = from_.changes.RemoveDirty(epoch_, *entries); !status.ok()) return status;
  Reached("drain.removed");
  const bool few = entries->size() >= listed_ && (units.size() + rows.size()) * 4 < entries->size();
  listed_ = few ? std::min(listed_ * 2, kMostEntries) : kEntries;
  drained_.fetch_add(units.size() + rows.size(), std::memory_order_relaxed);
  return entries->size();
}

absl::Status Copier::DrainAll(std::chrono::steady_clock::time_point deadline, const std::atomic<bool>& stop) {
  for (;;) {
    if (stop) return absl::CancelledError("the worker is stopped");
    const auto drained = Drain();
    if (!drained.ok()) return drained.status();
    if (*drained == 0) return absl::OkStatus();
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError("the dirty log was not drained in time");
    }
  }
}

absl::StatusOr<Copier::Page> Copier::CopyPage(UnitScan& scan, bool fresh) {
  const auto shared = lock_.Share();
  // Bounded, so that neither a stop nor a waiter for the lock is delayed by a scan that finds nothing.
  const ScanBudget budget(kPageScanBudget);
  const auto units = scan.Next();
  Page page;
  if (IsPaused(units.status())) {
    page.last = PausedAt(units.status());
    return page;
  }
  if (!units.ok()) return units.status();
  page.ended = units->empty();
  if (page.ended) return page;
  Reached("backfill.read");
  if (auto status = to_.writer.Replace(epoch_, *units, fresh); !status.ok()) return status;
  Reached("backfill.replaced");
  page.units = units->size();
  for (const Unit& unit : *units) {
    page.bytes += unit.key.size();
    for (const Cell& cell : unit.cells) page.bytes += cell.value.size();
  }
  page.last = units->back().key;
  return page;
}

// ---- draining in the background ----

Drainer::Drainer(Copier& copier)
    : copier_(copier), thread_([this, limits = CallScope::Current()] {
        const CallScope scope(limits);
        Run();
      }) {}

Drainer::~Drainer() { Stop().IgnoreError(); }

absl::Status Drainer::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return status();
}

absl::Status Drainer::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void Drainer::Run() {
  while (!stop_) {
    if (paused_) {
      std::this_thread::sleep_for(kIdle);
      continue;
    }
    const auto drained = copier_.Drain();
    if (!drained.ok()) {
      const MutexLock lock(mutex_);
      status_ = drained.status();
      return;
    }
    if (*drained == 0) std::this_thread::sleep_for(kIdle);
  }
}

}  // namespace kvstore::migration
