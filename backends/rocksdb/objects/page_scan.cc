#include "backends/rocksdb/objects/page_scan.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "backend_api/scan_budget.h"
#include "backends/rocksdb/engine/deleted.h"
#include "backends/rocksdb/engine/file_splits.h"
#include "backends/rocksdb/engine/status.h"
#include "base/big_endian.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

/// The call's deadline is checked after so many keys.
constexpr uint64_t kKeysBetweenChecks = 1024;

}  // namespace

PageScan::PageScan(Engine& engine, const Family& family, std::string lower, std::string upper)
    : lower_(std::move(lower)), upper_(std::move(upper)), upper_slice_(upper_) {
  rocksdb::ReadOptions read;
  read.total_order_seek = true;
  // A scan reads blocks that others will not need soon, so it must not push theirs out of the cache.
  read.fill_cache = false;
  read.max_skippable_internal_keys = kMaxDeletedInARow;
  read.iterate_upper_bound = &upper_slice_;
  it_.reset(engine.db().NewIterator(read, family.handle));
  it_->Seek(lower_);
}

absl::StatusOr<PageScan::At> PageScan::Find() {
  // The scan pauses only where it has got further than its beginning, so that each page makes progress.
  const auto pauses = [this] { return IsScanBudgetSpent() && key_ > lower_; };
  while (!it_->Valid()) {
    auto stopped = StoppedAt(*it_);
    if (!stopped) {
      if (!it_->status().ok()) return ToStatus(it_->status(), "scan a dataset");
      return At::kEnd;
    }
    key_ = *std::move(stopped);
    SpendScanBudget(kMaxDeletedInARow);
    if (auto status = CheckCall(); !status.ok()) return status;
    if (pauses()) return At::kPaused;
    it_->Seek(key_);
  }
  const std::string_view key = it_->key().ToStringView();
  key_.assign(key);
  if (pauses()) return At::kPaused;
  SpendScanBudget(1);
  if (++found_ % kKeysBetweenChecks == 0) {
    if (auto status = CheckCall(); !status.ok()) return status;
  }
  return At::kKey;
}

std::vector<Partition> PartitionIds(Engine& engine, const Family& family, size_t wanted) {
  const auto id_of = [](std::string_view key) -> std::optional<std::string> {
    if (key.size() < sizeof(uint64_t)) return std::nullopt;
    const auto id = ReadBigEndian<uint64_t>(key);
    if (id == 0 || id > kMaxId) return std::nullopt;
    return std::string(key.substr(0, sizeof(uint64_t)));
  };
  std::vector<Partition> partitions(1);
  for (const std::string& start : SplitByFiles(engine, family, wanted, id_of)) {
    partitions.back().ids.end = ReadBigEndian<uint64_t>(start);
    partitions.push_back({.name = "", .range = {}, .ids = {.start = ReadBigEndian<uint64_t>(start)}});
  }
  for (size_t i = 0; i < partitions.size(); ++i)
    partitions[i].name = fmt::format("{}/{}", i + 1, partitions.size());
  return partitions;
}

}  // namespace kvstore::rocks
