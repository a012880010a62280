#include "tests/chaos/tenants.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend_api/outcome.h"
#include "idgen/object_id.h"
#include "shardmap/mod_shard.h"

namespace kvstore::testing::chaos {
namespace {

uint64_t Number(const std::string& text) {
  uint64_t value = Registers::kNone;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Whether an error says that an object does not exist, and not that the dataset does not.
bool NoObject(const absl::Status& status) {
  return absl::IsNotFound(status) && status.message().find("no object") != std::string_view::npos;
}

}  // namespace

// ---- any ----

void Tenant::Created(uint64_t incarnation) {
  const MutexLock lock(mutex_);
  births_.push_back({Registers::Clock::now(), incarnation});
}

Tenant::Dropping Tenant::BeginDrop() {
  Dropping drop{.begin = Registers::Clock::now()};
  for (uint32_t key = 0; key < keys_; ++key) drop.keys.push_back(registers_.BeginDelete(key));
  return drop;
}

void Tenant::EndDrop(const Dropping& drop, Drop how, uint64_t incarnation) {
  auto by = Registers::Clock::now();
  {
    const MutexLock lock(mutex_);
    for (const Birth& birth : births_) {
      if (incarnation != 0 && birth.incarnation == incarnation && birth.time > drop.begin) by = birth.time;
    }
  }
  for (const Registers::Pending& key : drop.keys) {
    if (how == Drop::kDone) registers_.SucceedBy(key, by);
    if (how == Drop::kRefused) registers_.Fail(key);
  }
}

std::optional<std::string> Tenant::mistake() const {
  const MutexLock lock(mutex_);
  return mistake_;
}

void Tenant::RecordMistake(const std::string& what) {
  const MutexLock lock(mutex_);
  if (!mistake_) mistake_ = what;
}

absl::Status Tenant::RecordOutcome(const Registers::Pending& pending, const absl::Status& status) {
  if (status.ok()) {
    registers_.Succeed(pending);
  } else if (!IsInDoubt(status)) {
    registers_.Fail(pending);
  }
  return status;
}

// ---- rows ----

std::string RowsTenant::RowOf(uint32_t key) { return fmt::format("row{:02}", key / kColumns); }
std::string RowsTenant::ColumnOf(uint32_t key) { return fmt::format("c{}", key % kColumns); }

std::optional<Place> RowsTenant::PlaceOf(uint32_t key) const {
  return Place{ShardSpace::kMod, ModShard(RowOf(key), mod_shards_)};
}

absl::Status RowsTenant::Put(KVStore& store, uint32_t key) {
  const auto pending = registers().BeginWrite(key);
  const std::string column = ColumnOf(key);
  const std::string text = std::to_string(pending.value);
  const CellWrite cell{column, text, std::nullopt};
  return RecordOutcome(pending, store.PutRow(name(), RowOf(key), {&cell, 1}, {}).status());
}

absl::Status RowsTenant::Read(KVStore& store, uint32_t key) {
  ReadOptions options;
  options.columns.emplace().push_back(ColumnOf(key));
  const size_t read = registers().BeginRead(key);
  const auto row = store.GetRow(name(), RowOf(key), options);
  if (row.ok()) {
    registers().EndRead(read, row->items.empty() ? Registers::kNone : Number(row->items[0].cells[0].value));
  } else {
    registers().FailRead(read);
  }
  return row.status();
}

absl::Status RowsTenant::Step(KVStore& store, Random& random) {
  const uint64_t choice = random.Below(20);
  if (choice < 9) return Read(store, static_cast<uint32_t>(random.Below(kKeys)));
  const auto key = static_cast<uint32_t>(random.Below(kRows * kColumns));
  if (choice < 17) return Put(store, key);
  const auto pending = registers().BeginDelete(key);
  DeleteOptions options;
  options.columns.emplace().push_back(ColumnOf(key));
  return RecordOutcome(pending, store.DeleteRow(name(), RowOf(key), options));
}

absl::Status RowsTenant::ReadAll(KVStore& store) {
  for (uint32_t key = 0; key < kKeys; ++key) {
    if (auto status = Read(store, key); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RowsTenant::WriteAll(KVStore& store) {
  for (uint32_t key = 0; key < kRows * kColumns; ++key) {
    if (auto status = Put(store, key); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RowsTenant::CheckSettings(KVStore& store) {
  const auto spec = store.GetDataset(name());
  if (!spec.ok()) return spec.status();
  const uint32_t wanted = spec->max_versions;
  for (uint32_t key = 0; key < kRows * kColumns; key += kColumns) {
    for (uint32_t i = 0; i < wanted + 2; ++i) {
      if (auto status = Put(store, key); !status.ok()) return status;
    }
    ReadOptions options;
    options.columns.emplace().push_back(ColumnOf(key));
    options.versions = wanted + 2;
    const auto row = store.GetRow(name(), RowOf(key), options);
    if (!row.ok()) return row.status();
    const size_t found = row->items.empty() ? 0 : row->items[0].cells.size();
    if (found != wanted) {
      return absl::DataLossError(fmt::format("max_versions is {}, and after {} puts {} versions are there",
                                             wanted, wanted + 2, found));
    }
  }
  return absl::OkStatus();
}

// ---- objects ----

uint64_t ObjectsTenant::IdOf(uint32_t key) const {
  const MutexLock lock(objects_mutex_);
  return key < made_.size() ? made_[key].id : 0;
}

std::optional<Place> ObjectsTenant::PlaceOf(uint32_t key) const {
  const uint64_t id = IdOf(key);
  if (id == 0) return std::nullopt;
  return Place{ShardSpace::kId, ObjectId::FromValue(id)->shard()};
}

void ObjectsTenant::MayReuseId(uint32_t key) {
  const MutexLock lock(objects_mutex_);
  if (key < made_.size()) made_[key].may_be_reused = true;
}

std::optional<uint32_t> ObjectsTenant::Any(Random& random) const {
  const MutexLock lock(objects_mutex_);
  // Half of the time one of the latest objects is chosen: they are the ones that get lost.
  for (int i = 0; i < 20 && !made_.empty(); ++i) {
    const size_t among = random.OneIn(2) ? std::min<size_t>(made_.size(), 30) : made_.size();
    const size_t key = made_.size() - 1 - random.Below(among);
    if (made_[key].id != 0) return static_cast<uint32_t>(key);
  }
  return std::nullopt;
}

absl::Status ObjectsTenant::Create(KVStore& store) {
  uint32_t key = 0;
  {
    const MutexLock lock(objects_mutex_);
    // The history has no more keys.
    if (made_.size() >= kKeys) return absl::OkStatus();
    key = static_cast<uint32_t>(made_.size());
    made_.emplace_back();
  }
  const auto pending = registers().BeginWrite(key);
  const nlohmann::json data = {{"key", key}, {"v", pending.value}};
  const auto id = store.CreateObject(name(), data.dump(), {});
  if (!id.ok()) return RecordOutcome(pending, id.status());
  const MutexLock lock(objects_mutex_);
  if (const auto [other, fresh] = keys_of_.emplace(*id, key); !fresh) {
    if (!made_[other->second].may_be_reused) {
      RecordMistake(fmt::format("ID {} was given to object {} and to object {}", *id, other->second, key));
    }
    // From here on the ID belongs to the new object.
    made_[other->second].id = 0;
    other->second = key;
  }
  made_[key].id = *id;
  return RecordOutcome(pending, absl::OkStatus());
}

absl::Status ObjectsTenant::Read(KVStore& store, uint32_t key) {
  const uint64_t id = IdOf(key);
  if (id == 0) return absl::OkStatus();
  const size_t read = registers().BeginRead(key);
  const auto object = store.GetObject(name(), id, {});
  if (object.ok()) {
    const auto data = nlohmann::json::parse(object->data, nullptr, false);
    if (data.value("key", uint32_t{0}) != key) {
      const MutexLock lock(objects_mutex_);
      registers().FailRead(read);
      if (!made_[key].may_be_reused) {
        RecordMistake(fmt::format("object {} of key {} has '{}'", id, key, object->data));
      }
      return absl::OkStatus();
    }
    registers().EndRead(read, data.value("v", uint64_t{0}));
    return absl::OkStatus();
  }
  if (NoObject(object.status())) {
    registers().EndRead(read, Registers::kNone);
    return absl::OkStatus();
  }
  registers().FailRead(read);
  return object.status();
}

absl::Status ObjectsTenant::Patch(KVStore& store, uint32_t key) {
  const uint64_t id = IdOf(key);
  if (id == 0) return absl::OkStatus();
  const auto pending = registers().BeginWrite(key);
  const nlohmann::json patch = {{"v", pending.value}};
  const auto status = RecordOutcome(pending, store.PatchObject(name(), id, patch.dump(), {}).status());
  return NoObject(status) ? absl::OkStatus() : status;
}

absl::Status ObjectsTenant::Delete(KVStore& store, uint32_t key) {
  const uint64_t id = IdOf(key);
  if (id == 0) return absl::OkStatus();
  const auto pending = registers().BeginDelete(key);
  const auto status = RecordOutcome(pending, store.DeleteObject(name(), id, /*hard=*/true));
  return NoObject(status) ? absl::OkStatus() : status;
}

absl::Status ObjectsTenant::Step(KVStore& store, Random& random) {
  const uint64_t choice = random.Below(20);
  const auto key = Any(random);
  size_t made = 0;
  {
    const MutexLock lock(objects_mutex_);
    made = made_.size();
  }
  if (!key || (choice < 4 && made + 100 < kKeys)) return Create(store);
  if (choice < 12) return Read(store, *key);
  return choice < 19 ? Patch(store, *key) : Delete(store, *key);
}

absl::Status ObjectsTenant::ReadAll(KVStore& store) {
  size_t made = 0;
  {
    const MutexLock lock(objects_mutex_);
    made = made_.size();
  }
  for (uint32_t key = 0; key < made; ++key) {
    if (auto status = Read(store, key); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ObjectsTenant::WriteAll(KVStore& store) {
  size_t made = 0;
  {
    const MutexLock lock(objects_mutex_);
    made = made_.size();
  }
  for (uint32_t key = 0; key < made; key += 1 + static_cast<uint32_t>(made / 50)) {
    if (auto status = Patch(store, key); !status.ok()) return status;
  }
  for (uint32_t i = 0; i < 8 && made + 50 < kKeys; ++i) {
    if (auto status = Create(store); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// ---- mappings ----

uint64_t MappingsTenant::FromOf(uint32_t key) {
  const uint32_t from = key / kEntries;
  return ObjectId::Make(from / kPerShard, 1000, 1 + from % kPerShard)->value();
}

std::optional<Place> MappingsTenant::PlaceOf(uint32_t key) const {
  return Place{ShardSpace::kId, key / kEntries / kPerShard};
}

absl::Status MappingsTenant::Add(KVStore& store, uint32_t key) {
  const auto pending = registers().BeginWrite(key);
  return RecordOutcome(pending, store.AddMapping(name(), FromOf(key), 1 + key % kEntries, pending.value));
}

absl::Status MappingsTenant::List(KVStore& store, uint32_t key) {
  const uint32_t first = key - key % kEntries;
  std::vector<size_t> reads;
  for (uint32_t i = 0; i < kEntries; ++i) reads.push_back(registers().BeginRead(first + i));
  const auto page = store.ListMapping(name(), FromOf(first), {});
  std::vector<uint64_t> values(kEntries, Registers::kNone);
  if (page.ok()) {
    for (const MappingEntry& entry : page->entries) {
      if (entry.to < 1 || entry.to > kEntries) {
        RecordMistake(fmt::format("{} has an entry {}", FromOf(first), entry.to));
        continue;
      }
      values[entry.to - 1] = entry.sequence;
    }
  }
  for (uint32_t i = 0; i < kEntries; ++i) {
    page.ok() ? registers().EndRead(reads[i], values[i]) : registers().FailRead(reads[i]);
  }
  return page.status();
}

absl::Status MappingsTenant::Step(KVStore& store, Random& random) {
  const auto key = static_cast<uint32_t>(random.Below(Used()));
  const uint64_t choice = random.Below(20);
  if (choice < 8) return List(store, key);
  if (choice < 17) return Add(store, key);
  const auto pending = registers().BeginDelete(key);
  return RecordOutcome(pending, store.RemoveMapping(name(), FromOf(key), 1 + key % kEntries).status());
}

absl::Status MappingsTenant::ReadAll(KVStore& store) {
  for (uint32_t key = 0; key < Used(); key += kEntries) {
    if (auto status = List(store, key); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MappingsTenant::WriteAll(KVStore& store) {
  for (uint32_t key = 0; key < Used(); ++key) {
    if (auto status = Add(store, key); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore::testing::chaos
