#include "backends/rocksdb/engine/dirty_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/rocksdb/engine/status.h"
#include "base/big_endian.h"
#include "base/clock.h"

namespace kvstore::rocks {
namespace {

constexpr uint64_t kMaxCounted = 100'000;

std::string IdKey(uint64_t id) {
  std::string key;
  AppendBigEndian(key, id);
  return key;
}

}  // namespace

std::string DirtyLog::FamilyName(std::string_view dataset) { return std::string(dataset) + "$dirty"; }

absl::Status DirtyLog::Add(rocksdb::WriteBatch& batch, std::string_view unit) {
  std::string value;
  value.reserve(sizeof(uint64_t) + unit.size());
  AppendBigEndian(value, WallClockMs());
  value += unit;
  return ToStatus(batch.Put(handle_, IdKey(next_id_.fetch_add(1, std::memory_order_relaxed)), value),
                  "record what is written");
}

std::unique_ptr<rocksdb::Iterator> DirtyLog::Begin() const {
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}, handle_));
  it->Seek(IdKey(first_.load(std::memory_order_acquire)));
  return it;
}

absl::StatusOr<std::vector<DirtyEntry>> DirtyLog::Read(size_t limit) const {
  std::vector<DirtyEntry> entries;
  const auto it = Begin();
  for (; it->Valid() && entries.size() < limit; it->Next()) {
    if (it->key().size() != sizeof(uint64_t) || it->value().size() < sizeof(uint64_t)) {
      return absl::DataLossError(
          fmt::format("{}: an entry of the dirty log does not decode (key of {} bytes, value of {} bytes)",
                      handle_->GetName(), it->key().size(), it->value().size()));
    }
    entries.push_back({.id = ReadBigEndian<uint64_t>(it->key().ToStringView()),
                       .key = std::string(it->value().ToStringView().substr(sizeof(uint64_t)))});
  }
  if (!it->status().ok()) return ToStatus(it->status(), "read a dirty log");
  return entries;
}

absl::Status DirtyLog::Remove(std::span<const DirtyEntry> entries, rocksdb::WriteBatch& batch) {
  removed_.fetch_add(entries.size(), std::memory_order_relaxed);
  for (const DirtyEntry& entry : entries) {
    // SingleDelete is safe because each ID is put only once.
    if (const auto status = batch.SingleDelete(handle_, IdKey(entry.id)); !status.ok()) {
      return ToStatus(status, "remove from a dirty log");
    }
  }
  return absl::OkStatus();
}

absl::Status DirtyLog::SkipRemoved(const std::function<void()>& wait) {
  if (removed_.load(std::memory_order_relaxed) < kManyRemoved) return absl::OkStatus();
  removed_.store(0, std::memory_order_relaxed);
  uint64_t first = next_id_.load(std::memory_order_acquire);
  wait();
  const auto it = Begin();
  if (!it->status().ok()) return ToStatus(it->status(), "read a dirty log");
  if (it->Valid()) first = std::min(first, ReadBigEndian<uint64_t>(it->key().ToStringView()));
  first_.store(first, std::memory_order_release);
  return absl::OkStatus();
}

absl::StatusOr<DirtyLag> DirtyLog::Lag() const {
  DirtyLag lag;
  const auto it = Begin();
  for (; it->Valid() && lag.entries < kMaxCounted; it->Next(), ++lag.entries) {
    if (lag.entries > 0 || it->value().size() < sizeof(uint64_t)) continue;
    const uint64_t now = WallClockMs();
    const auto at = ReadBigEndian<uint64_t>(it->value().ToStringView());
    lag.oldest_ms = now > at ? now - at : 0;
  }
  if (!it->status().ok()) return ToStatus(it->status(), "read a dirty log");
  return lag;
}

}  // namespace kvstore::rocks
