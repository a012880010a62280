#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/rocksdb/engine/change_entry.h"
#include "backends/rocksdb/engine/change_log.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/engine/status.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "kvstore_api/limits.h"

/// The consumers that follow a change log under a name, and how far they have come.
namespace kvstore::rocks {
namespace {

/// The bytes of a stored consumer after its name.
constexpr size_t kNotedBytes = 8 + 8 + 4 + 8;

}  // namespace

absl::StatusOr<ChangeLog::AllNoted> ChangeLog::DecodeConsumers(std::string_view stored) {
  AllNoted consumers;
  while (!stored.empty()) {
    uint64_t size = 0;
    if (!ConsumeVarint(stored, size) || stored.size() < kNotedBytes || size > stored.size() - kNotedBytes) {
      return absl::DataLossError("the consumers of a change log do not decode");
    }
    const std::string_view name = stored.substr(0, size);
    const std::string_view noted = stored.substr(size, kNotedBytes);
    consumers.emplace(name, Noted{.place = {.generation = ReadBigEndian<uint64_t>(noted),
                                            .number = ReadBigEndian<uint64_t>(noted.substr(8)),
                                            .unit = ReadBigEndian<uint32_t>(noted.substr(16))},
                                  .set_ms = ReadBigEndian<uint64_t>(noted.substr(20))});
    stored.remove_prefix(size + kNotedBytes);
  }
  return consumers;
}

absl::Status ChangeLog::StoreConsumers(AllNoted consumers) {
  std::string value;
  for (const auto& [name, noted] : consumers) {
    AppendVarint(value, name.size());
    value += name;
    AppendBigEndian(value, noted.place.generation);
    AppendBigEndian(value, noted.place.number);
    AppendBigEndian(value, noted.place.unit);
    AppendBigEndian(value, noted.set_ms);
  }
  rocksdb::WriteBatch batch;
  if (auto status =
          batch.Put(handle_, rocksdb::Slice(kChangeConsumersKey.data(), kChangeConsumersKey.size()), value);
      !status.ok()) {
    return ToStatus(status, "note a consumer of changes");
  }
  if (auto status = engine_.Write(batch, settings_->sync.load(std::memory_order_relaxed)); !status.ok()) {
    return status;
  }
  const MutexLock lock(mutex_);
  consumers_ = std::move(consumers);
  return absl::OkStatus();
}

absl::Status ChangeLog::SetConsumer(std::string_view name, const ChangePlace& place) {
  // The lock keeps entries after the place from being trimmed meanwhile.
  const MutexLock alone(trim_mutex_);
  AllNoted consumers;
  {
    const MutexLock lock(mutex_);
    if (auto status = Check(place); !status.ok()) return status;
    consumers = consumers_;
  }
  if (consumers.size() >= kMaxConsumers && consumers.find(name) == consumers.end()) {
    return absl::ResourceExhaustedError(
        fmt::format("name: '{}' has {} consumers already, which is the limit; kv consumers list {} shows "
                    "those that are gone",
                    settings_->name, kMaxConsumers, settings_->name));
  }
  consumers[std::string(name)] = {.place = place, .set_ms = WallClockMs()};
  return StoreConsumers(std::move(consumers));
}

absl::Status ChangeLog::DropConsumer(std::string_view name) {
  const MutexLock alone(trim_mutex_);
  AllNoted consumers;
  {
    const MutexLock lock(mutex_);
    consumers = consumers_;
  }
  const auto found = consumers.find(name);
  if (found == consumers.end()) {
    return absl::NotFoundError(fmt::format("name: '{}' has no consumer named '{}'", settings_->name, name));
  }
  consumers.erase(found);
  return StoreConsumers(std::move(consumers));
}

absl::StatusOr<std::vector<ChangeLog::Consumer>> ChangeLog::Consumers() const {
  std::vector<Consumer> result;
  uint64_t horizon = 0;
  {
    const MutexLock lock(mutex_);
    horizon = first_open_ - 1;
    for (const auto& [name, noted] : consumers_) {
      result.push_back({.name = name, .place = noted.place, .set_ms = noted.set_ms});
      if (!Check(noted.place).ok()) result.back().place.reset();
    }
  }
  const uint64_t now = WallClockMs();
  const std::unique_ptr<rocksdb::Iterator> it(engine_.db().NewIterator({}, handle_));
  for (Consumer& consumer : result) {
    if (!consumer.place || consumer.place->number > horizon) continue;
    it->Seek(ChangeKey(consumer.place->number));
    if (!it->status().ok()) return ToStatus(it->status(), "read a change log");
    if (!it->Valid()) continue;  // trimmed meanwhile
    const auto entry = ReadChangeEntry(*it);
    if (!entry.ok()) return entry.status();
    if (entry->number <= horizon) consumer.lag_ms = std::max<uint64_t>(now, entry->at_ms + 1) - entry->at_ms;
  }
  return result;
}

uint64_t ChangeLog::FirstWanted() const {
  const MutexLock lock(mutex_);
  uint64_t first = UINT64_MAX;
  for (const auto& [name, noted] : consumers_) {
    // One that has to begin again holds nothing back.
    if (Check(noted.place).ok()) first = std::min(first, noted.place.number);
  }
  return first;
}

}  // namespace kvstore::rocks
