#include "backends/rocksdb/engine/change_log.h"

#include <fmt/format.h>
#include <rocksdb/convenience.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>

#include "backend_api/prompt_scope.h"
#include "backends/rocksdb/engine/change_entry.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/engine/status.h"
#include "base/big_endian.h"
#include "base/clock.h"

namespace kvstore::rocks {
namespace {

// The log's own keys, which are before all numbers.
constexpr std::string_view kGenerationsKey("\0", 1);
constexpr std::string_view kFirstKey("\0\0", 2);
constexpr size_t kGenerationBytes = 2 * sizeof(uint64_t);
/// A log remembers this many runs. It forgets older ones, and refuses their places, up to the first one in
/// which a consumer is.
constexpr size_t kMaxGenerations = 1000;
/// Beyond this many runs a log forgets the oldest ones even if a consumer is there.
constexpr size_t kMostGenerations = 20'000;
/// A log is trimmed whenever it has grown by so much.
constexpr uint64_t kTrimEveryBytes = uint64_t{4} << 20;

uint64_t RandomId() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace

std::string ChangeLog::FamilyName(std::string_view dataset) { return std::string(dataset) + "$changes"; }

ChangeLog::ChangeLog(Engine& engine, std::shared_ptr<FamilySettings> settings,
                     rocksdb::ColumnFamilyHandle* handle)
    : engine_(engine), settings_(std::move(settings)), handle_(handle) {}

ChangeLog::~ChangeLog() { engine_.CloseAuxiliaryFamily(handle_); }

absl::StatusOr<std::shared_ptr<ChangeLog>> ChangeLog::Open(Engine& engine,
                                                           std::shared_ptr<FamilySettings> settings) {
  const std::string name = FamilyName(settings->name);
  const auto open = [&]() -> absl::StatusOr<std::shared_ptr<ChangeLog>> {
    const auto handle = engine.OpenAuxiliaryFamily(name);
    if (!handle.ok()) return handle.status();
    return std::shared_ptr<ChangeLog>(new ChangeLog(engine, settings, *handle));
  };
  auto log = open();
  if (!log.ok()) return log;
  const auto loaded = (*log)->Load();
  if (!loaded.ok()) return loaded.status();
  if (*loaded) return log;
  if (auto status = engine.DropAuxiliaryFamily(name, (*log)->handle_); !status.ok()) return status;
  log = open();
  if (!log.ok()) return log;
  if (auto status = (*log)->Create(); !status.ok()) return status;
  return log;
}

absl::StatusOr<std::string> ChangeLog::Get(std::string_view key) const {
  std::string value;
  const auto status = engine_.db().Get({}, handle_, rocksdb::Slice(key.data(), key.size()), &value);
  if (!status.ok() && !status.IsNotFound()) return ToStatus(status, "read a change log");
  return value;
}

absl::StatusOr<bool> ChangeLog::Load() {
  const auto stored = Get(kGenerationsKey);
  if (!stored.ok()) return stored.status();
  const auto first = Get(kFirstKey);
  if (!first.ok()) return first.status();
  if (stored->empty()) return false;  // a create that was cut short
  if (stored->size() % kGenerationBytes != sizeof(uint64_t) || stored->size() <= kGenerationBytes ||
      (!first->empty() && first->size() != sizeof(uint64_t))) {
    return absl::DataLossError("what a change log says of itself does not decode");
  }
  std::string_view rest = *stored;
  if (ReadBigEndian<uint64_t>(rest) != settings_->incarnation) return false;
  rest.remove_prefix(sizeof(uint64_t));

  const auto stored_consumers = Get(kChangeConsumersKey);
  if (!stored_consumers.ok()) return stored_consumers.status();
  auto consumers = DecodeConsumers(*stored_consumers);
  if (!consumers.ok()) return consumers.status();

  const MutexLock lock(mutex_);
  consumers_ = *std::move(consumers);
  for (; !rest.empty(); rest.remove_prefix(kGenerationBytes)) {
    generations_.push_back({.id = ReadBigEndian<uint64_t>(rest),
                            .first = ReadBigEndian<uint64_t>(rest.substr(sizeof(uint64_t)))});
  }
  if (!first->empty()) oldest_ = ReadBigEndian<uint64_t>(*first);
  first_open_ = std::max(generations_.back().first, oldest_.load());
  const std::unique_ptr<rocksdb::Iterator> it(engine_.db().NewIterator({}, handle_));
  it->SeekToLast();
  if (!it->status().ok()) return ToStatus(it->status(), "read a change log");
  if (it->Valid() && it->key().size() == sizeof(uint64_t)) {
    const auto last = ReadChangeEntry(*it);
    if (!last.ok()) return last.status();
    first_open_ = std::max(first_open_, last->number + 1);
    last_at_ms_ = last->at_ms;
  }
  // So that the first write trims: processes that live shortly would never write enough.
  bytes_ = kTrimEveryBytes;
  return true;
}

absl::Status ChangeLog::Create() {
  rocksdb::WriteBatch batch;
  {
    const MutexLock lock(mutex_);
    BeginGeneration();
    const std::string value = EncodedGenerations();
    if (const auto status =
            batch.Put(handle_, rocksdb::Slice(kGenerationsKey.data(), kGenerationsKey.size()), value);
        !status.ok()) {
      return ToStatus(status, "make a change log");
    }
  }
  if (auto status = engine_.Write(batch, /*sync=*/false); !status.ok()) return status;
  const MutexLock lock(mutex_);
  own_is_stored_ = true;
  return absl::OkStatus();
}

std::string ChangeLog::EncodedGenerations() const {
  std::string value;
  AppendBigEndian(value, settings_->incarnation);
  for (const Generation& generation : generations_) {
    AppendBigEndian(value, generation.id);
    AppendBigEndian(value, generation.first);
  }
  return value;
}

void ChangeLog::BeginGeneration() {
  if (has_own_) return;
  has_own_ = true;
  generations_.push_back({.id = RandomId(), .first = first_open_});
  // A generation whose entries are all gone is kept only if a follower may still ask for its end.
  auto kept = generations_.begin();
  while (kept + 1 != generations_.end() && (kept + 1)->first < oldest_.load()) ++kept;
  // The first one in which a consumer is.
  auto wanted = generations_.begin();
  for (bool found = false; wanted != generations_.end(); ++wanted) {
    for (const auto& [name, noted] : consumers_) found = found || noted.place.generation == wanted->id;
    if (found) break;
  }
  const auto newest = [](std::vector<Generation>& all, size_t most) {
    return all.end() - static_cast<std::ptrdiff_t>(std::min(most, all.size()));
  };
  kept = std::max({kept, std::min(newest(generations_, kMaxGenerations), wanted),
                   newest(generations_, kMostGenerations)});
  generations_.erase(generations_.begin(), kept);
}

// ---- writing ----

ChangeLog::Writing ChangeLog::Begin() {
  const uint64_t now = WallClockMs();
  const MutexLock lock(mutex_);
  BeginGeneration();
  last_at_ms_ = std::max(last_at_ms_, now);
  const Writing writing{.number = Next(), .at_ms = last_at_ms_};
  open_.push_back({.at_ms = writing.at_ms});
  return writing;
}

absl::Status ChangeLog::Add(rocksdb::WriteBatch& batch, const Writing& writing, std::string_view units) {
  std::string value;
  value.reserve(sizeof(uint64_t) + units.size());
  AppendBigEndian(value, writing.at_ms);
  value += units;
  auto status = batch.Put(handle_, ChangeKey(writing.number), value);
  if (status.ok()) {
    const MutexLock lock(mutex_);
    // Until one of them is written, each has the generation, so that no entry is there without it.
    if (!own_is_stored_) {
      status = batch.Put(handle_, rocksdb::Slice(kGenerationsKey.data(), kGenerationsKey.size()),
                         EncodedGenerations());
    }
  }
  return ToStatus(status, "record what is written");
}

void ChangeLog::AppendUnit(std::string& units, std::string_view key) {
  AppendVarint(units, key.size());
  units += key;
}

void ChangeLog::MarkEnded(uint64_t number) {
  open_[number - first_open_].has_ended = true;
  for (; !open_.empty() && open_.front().has_ended; ++first_open_) open_.pop_front();
}

void ChangeLog::End(const Writing& writing, size_t bytes, Outcome outcome) {
  {
    const MutexLock lock(mutex_);
    if (outcome == Outcome::kInDoubt) {
      in_doubt_.push_back({.number = writing.number, .until = Next()});
      return;
    }
    if (outcome == Outcome::kNothing && writing.number + 1 == Next()) {
      // It is given again: else attempts while the disk is full would add up after one that is in doubt.
      open_.pop_back();
      return;
    }
    if (outcome == Outcome::kWritten) {
      own_is_stored_ = true;
      while (!in_doubt_.empty() && writing.number >= in_doubt_.front().until) {
        MarkEnded(in_doubt_.front().number);
        in_doubt_.pop_front();
      }
    }
    MarkEnded(writing.number);
    bytes_ += bytes;
    if (bytes_ < kTrimEveryBytes) return;
    if (IsPrompt()) {
      // To trim is to wait for the device. It stays due if the trimmer does not take it.
      if (engine_.trimmer().Suggest(settings_, Trimmer::kChangeLog)) bytes_ = 0;
      return;
    }
    bytes_ = 0;
  }
  // Entries that could not be trimmed now, on a full disk for example, are trimmed later.
  Trim().IgnoreError();
}

// ---- reading ----

ChangePlace ChangeLog::PlaceOf(uint64_t number) const {
  const auto behind = std::upper_bound(
      generations_.begin(), generations_.end(), number,
      [](uint64_t wanted, const Generation& generation) { return wanted < generation.first; });
  size_t index = behind == generations_.begin() ? 0 : static_cast<size_t>(behind - generations_.begin()) - 1;
  // One that is not stored yet may never be.
  if (index + 1 == generations_.size() && has_own_ && !own_is_stored_ && index > 0) --index;
  return {.generation = generations_[index].id, .number = number};
}

absl::Status ChangeLog::Check(const ChangePlace& place) const {
  const auto gone = [this](std::string_view why) {
    return absl::OutOfRangeError(fmt::format(
        "from: {}; begin again with the whole dataset (kv changes {} --snapshot), or with what is "
        "left (--from begin)",
        why, settings_->name));
  };
  for (size_t i = 0; i < generations_.size(); ++i) {
    if (generations_[i].id != place.generation) continue;
    const uint64_t end = i + 1 < generations_.size() ? generations_[i + 1].first : Next();
    // At the end there is no entry of this generation, of which a part could have been read.
    if (place.number < generations_[i].first || place.number > end ||
        (place.number == end && place.unit > 0)) {
      return gone(
          "the store lost changes from before this token: its last writes before a power failure, or it "
          "was restored from a backup");
    }
    if (place.number < oldest_.load()) return gone("changes after this token are not kept any more");
    return absl::OkStatus();
  }
  return gone("the changes of the time of this token are not kept any more, or it is of another store");
}

absl::StatusOr<ChangeLog::Page> ChangeLog::Read(const ChangePlace& from, size_t limit, size_t max_bytes) {
  Page page{.units = {}, .next = from};
  uint64_t horizon = 0;
  {
    const MutexLock lock(mutex_);
    if (auto status = Check(from); !status.ok()) return status;
    horizon = first_open_ - 1;
    if (open_.empty()) {
      last_at_ms_ = std::max(last_at_ms_, WallClockMs());
      page.complete_until_ms = last_at_ms_ - 1;
    } else {
      page.complete_until_ms = open_.front().at_ms - 1;
    }
  }
  // A follower that has everything asks often.
  if (from.number > horizon) return page;
  const std::unique_ptr<rocksdb::Iterator> it(engine_.db().NewIterator({}, handle_));
  // Trim raises it before it removes what the iterator may not have seen.
  if (from.number < oldest_.load()) {
    const MutexLock lock(mutex_);
    return Check(from);
  }
  uint32_t skipped = from.unit;
  size_t bytes = 0;
  for (it->Seek(ChangeKey(from.number)); it->Valid(); it->Next()) {
    const auto entry = ReadChangeEntry(*it);
    if (!entry.ok()) return entry.status();
    if (entry->number > horizon) break;
    if (entry->number != from.number) skipped = 0;
    std::string_view rest = entry->units;
    for (uint32_t index = 0; !rest.empty(); ++index) {
      uint64_t size = 0;
      if (!ConsumeVarint(rest, size) || size > rest.size()) return ChangeNotDecoded();
      const std::string_view key = rest.substr(0, size);
      rest.remove_prefix(size);
      if (index < skipped) continue;
      if (page.units.size() == limit || bytes >= max_bytes) {
        page.complete_until_ms = 0;
        return page;
      }
      bytes += key.size();
      const MutexLock lock(mutex_);
      page.next = rest.empty() ? PlaceOf(entry->number + 1) : PlaceOf(entry->number);
      if (!rest.empty()) page.next.unit = index + 1;
      page.units.push_back({.key = std::string(key), .at_ms = entry->at_ms, .after = page.next});
    }
  }
  if (!it->status().ok()) return ToStatus(it->status(), "read a change log");
  return page;
}

ChangePlace ChangeLog::Oldest() const {
  const MutexLock lock(mutex_);
  return PlaceOf(oldest_.load());
}

ChangePlace ChangeLog::Newest() const {
  const MutexLock lock(mutex_);
  return PlaceOf(first_open_);
}

// ---- trimming ----

absl::StatusOr<uint64_t> ChangeLog::FirstToKeep(uint64_t first, uint64_t last) const {
  const uint64_t keep_ms = settings_->keep_changes_ms.load(std::memory_order_relaxed);
  const uint64_t now = WallClockMs();
  const uint64_t oldest_ms = now > keep_ms ? now - keep_ms : 0;
  const std::unique_ptr<rocksdb::Iterator> it(engine_.db().NewIterator({}, handle_));
  const auto is_too_many = [&](uint64_t number) {
    const std::string begin = ChangeKey(number);
    const std::string end = ChangeKey(last + 1);
    const rocksdb::Range range(begin, end);
    uint64_t bytes = 0;
    rocksdb::SizeApproximationOptions options;
    options.include_memtables = true;
    options.include_files = true;
    engine_.db().GetApproximateSizes(options, handle_, &range, 1, &bytes).PermitUncheckedError();
    return bytes > engine_.options().changes_bytes;
  };
  const uint64_t wanted = FirstWanted();
  // All are true up to some number, and then false.
  uint64_t low = first;
  uint64_t high = last;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    it->Seek(ChangeKey(middle));
    if (!it->status().ok()) return ToStatus(it->status(), "read a change log");
    if (!it->Valid()) break;  // cannot be: `last` is there
    const auto entry = ReadChangeEntry(*it);
    if (!entry.ok()) return entry.status();
    if ((entry->at_ms < oldest_ms && middle < wanted) || is_too_many(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

absl::Status ChangeLog::Trim() {
  // Whoever comes while one trims need not.
  if (!trim_mutex_.try_lock()) return absl::OkStatus();
  absl::Status status = TrimAlone();
  trim_mutex_.unlock();
  return status;
}

absl::Status ChangeLog::TrimAlone() {
  uint64_t last = 0;
  {
    const MutexLock lock(mutex_);
    if (first_open_ == 1) return absl::OkStatus();
    last = first_open_ - 1;
  }
  const uint64_t oldest = oldest_.load();
  if (last <= oldest) return absl::OkStatus();
  const auto first = FirstToKeep(oldest, last);
  if (!first.ok()) return first.status();
  if (*first <= oldest) return absl::OkStatus();
  // Before anything goes, and synced: else some of it could be gone, and places before it be accepted again.
  const std::string begin = ChangeKey(0);
  const std::string end = ChangeKey(*first);
  rocksdb::WriteBatch batch;
  auto status = batch.Put(handle_, rocksdb::Slice(kFirstKey.data(), kFirstKey.size()), end);
  if (status.ok()) status = batch.DeleteRange(handle_, begin, end);
  if (!status.ok()) return ToStatus(status, "trim a change log");
  // Before they are gone for readers (Read).
  oldest_.store(*first);
  if (auto written = engine_.Write(batch, /*sync=*/true); !written.ok()) {
    oldest_.store(oldest);
    return written;
  }
  // The tombstone has deleted them, but whole files need not wait for a compaction.
  const rocksdb::Slice begin_key(begin);
  const rocksdb::Slice end_key(end);
  rocksdb::DeleteFilesInRange(&engine_.db(), handle_, &begin_key, &end_key, /*include_end=*/false)
      .PermitUncheckedError();
  return absl::OkStatus();
}

}  // namespace kvstore::rocks
