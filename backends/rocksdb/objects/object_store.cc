#include "backends/rocksdb/object_store.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/rocksdb/status.h"
#include "base/clock.h"
#include "base/hash.h"
#include "idgen/object_id.h"
#include "kvstore_api/batch_bytes.h"
#include "kvstore_api/big_endian.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/json.h"

namespace kvstore::rocks {
namespace {

constexpr size_t kHeaderBytes = 1 + sizeof(uint64_t);
constexpr char kInactive = 1;  // flag; stored, never renumber

/// Objects of a batch that are read at once.
constexpr size_t kTogether = 64;

constexpr uint64_t kReservation = 64;  // local IDs
constexpr std::string_view kCounterPrefix = "ids/";

absl::Status NoObject(uint64_t id) {
  return absl::NotFoundError(fmt::format("object_id: there is no object {}", id));
}

absl::StatusOr<Object> Visible(uint64_t id, std::string_view stored, bool include_inactive) {
  auto object = DecodeObject(id, stored);
  if (object.ok() && !include_inactive && (stored[0] & kInactive) != 0) {
    return absl::NotFoundError(fmt::format("object_id: object {} is deleted (\"active\": false)", id));
  }
  return object;
}

std::string IdKey(uint64_t id) {
  std::string key;
  AppendBigEndian(key, id);
  return key;
}

/// 1 if there is none.
absl::StatusOr<uint64_t> ReadCounter(Engine& engine, const std::string& key) {
  std::string stored;
  const auto status = engine.db().Get({}, engine.meta(), key, &stored);
  if (status.IsNotFound()) return 1;
  if (!status.ok()) return ToStatus(status, "read a counter of IDs");
  if (stored.size() != sizeof(uint64_t)) return absl::DataLossError("a counter of IDs does not decode");
  return ReadBigEndian<uint64_t>(stored);
}

}  // namespace

std::string EncodeObject(std::string_view data, uint64_t timestamp) {
  std::string value;
  value.reserve(kHeaderBytes + data.size());
  value.push_back(IsInactive(data) ? kInactive : 0);
  AppendBigEndian(value, timestamp);
  value.append(data);
  return value;
}

absl::StatusOr<Object> DecodeObject(uint64_t id, std::string_view stored) {
  if (stored.size() < kHeaderBytes || (stored[0] & ~kInactive) != 0) {
    return absl::DataLossError(fmt::format("object_id: {} is stored in a form that does not decode", id));
  }
  return Object{id, std::string(stored.substr(kHeaderBytes)), ReadBigEndian<uint64_t>(stored.substr(1))};
}

std::string RocksObjectStore::FloorKey(uint64_t incarnation) {
  std::string key(kCounterPrefix);
  AppendBigEndian(key, incarnation);
  return key;
}

absl::Status RocksObjectStore::RaiseFloor(Engine& engine, uint64_t incarnation, uint64_t left_out) {
  const auto counters = Counters(engine, incarnation);
  if (!counters.ok()) return counters.status();
  const auto floor = ReadCounter(engine, FloorKey(incarnation));
  if (!floor.ok()) return floor.status();
  uint64_t least = *floor;
  for (const auto& [shard, next] : *counters) least = std::max(least, next);
  // No create takes less than a byte of a log, and counters are ahead by a reservation.
  least = std::min(least + left_out + kReservation, ObjectId::kMaxLocal + 1);
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Put(engine.meta(), FloorKey(incarnation), IdKey(least)); !status.ok()) {
    return ToStatus(status, "raise the counters of IDs");
  }
  return engine.Write(batch, /*sync=*/true);
}

std::string RocksObjectStore::CounterKey(uint64_t incarnation, uint32_t shard) {
  std::string key(kCounterPrefix);
  AppendBigEndian(key, incarnation);
  AppendBigEndian(key, shard);
  return key;
}

absl::Status RocksObjectStore::DropState(Engine& engine, uint64_t incarnation) {
  rocksdb::WriteBatch batch;
  const std::string begin = FloorKey(incarnation);
  const std::string end = CounterKey(incarnation, ObjectId::kMaxShard + 1);
  if (const auto status = batch.DeleteRange(engine.meta(), begin, end); !status.ok()) {
    return ToStatus(status, "forget the counters of IDs");
  }
  if (auto status = Requests::Drop(engine, incarnation, batch); !status.ok()) return status;
  return engine.Write(batch, /*sync=*/false, /*makes_room=*/true);
}

RocksObjectStore::~RocksObjectStore() {
  if (engine_->FindFamily(family_->settings->name) != family_) return;  // dropped
  for (const auto& [shard, counter] : counters_) {
    // Give back what was reserved and not used, unless a migration has raised it meanwhile. If that fails
    // there is a gap, which is harmless.
    if (counter.next >= counter.reserved || family_->gate.state() != EndpointState::kServing) continue;
    StoreCounter(shard, counter.next).IgnoreError();
  }
}

uint64_t RocksObjectStore::Hash(uint64_t id) const {
  return Fnv1a(IdKey(id), family_->settings->incarnation);
}

absl::Status RocksObjectStore::StoreCounter(uint32_t shard, uint64_t reserved) {
  rocksdb::WriteBatch batch;
  const auto status =
      batch.Put(engine_->meta(), CounterKey(family_->settings->incarnation, shard), IdKey(reserved));
  if (!status.ok()) return ToStatus(status, "reserve IDs");
  // Not synced: the create that needs this follows in the same log, and syncs both if it must.
  return engine_->Write(batch, /*sync=*/false);
}

absl::StatusOr<RocksObjectStore::Counter*> RocksObjectStore::FindCounter(uint32_t shard) {
  const auto found = counters_.find(shard);
  if (found != counters_.end()) return &found->second;
  const uint64_t incarnation = family_->settings->incarnation;
  const auto stored = ReadCounter(*engine_, CounterKey(incarnation, shard));
  if (!stored.ok()) return stored.status();
  const auto floor = ReadCounter(*engine_, FloorKey(incarnation));
  if (!floor.ok()) return floor.status();
  const uint64_t next = std::max(*stored, *floor);
  const Counter counter{next, next};
  return &counters_.emplace(shard, counter).first->second;
}

absl::StatusOr<std::map<uint32_t, uint64_t>> RocksObjectStore::Counters(Engine& engine,
                                                                        uint64_t incarnation) {
  std::map<uint32_t, uint64_t> next;
  const std::string begin = CounterKey(incarnation, 0);
  const std::string end = CounterKey(incarnation, ObjectId::kMaxShard + 1);
  const std::unique_ptr<rocksdb::Iterator> it(engine.db().NewIterator({}, engine.meta()));
  for (it->Seek(begin); it->Valid() && it->key().compare(end) < 0; it->Next()) {
    if (it->value().size() != sizeof(uint64_t))
      return absl::DataLossError("a counter of IDs does not decode");
    const std::string_view key = it->key().ToStringView();
    next[ReadBigEndian<uint32_t>(key.substr(key.size() - sizeof(uint32_t)))] =
        ReadBigEndian<uint64_t>(it->value().ToStringView());
  }
  if (!it->status().ok()) return ToStatus(it->status(), "read the counters of IDs");
  return next;
}

absl::Status RocksObjectStore::RaiseCounters(const std::map<uint32_t, uint64_t>& least) {
  const std::lock_guard lock(counters_mutex_);
  for (const auto& [shard, next] : least) {
    const auto counter = FindCounter(shard);
    if (!counter.ok()) return counter.status();
    if ((*counter)->next >= next) continue;
    if ((*counter)->reserved < next) {
      if (auto status = StoreCounter(shard, next); !status.ok()) return status;
      (*counter)->reserved = next;
    }
    (*counter)->next = next;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> RocksObjectStore::NextLocal(uint32_t shard) {
  const std::lock_guard lock(counters_mutex_);
  const auto found = FindCounter(shard);
  if (!found.ok()) return found.status();
  Counter& counter = **found;
  if (counter.next > ObjectId::kMaxLocal) {
    return absl::ResourceExhaustedError(
        fmt::format("shard {}: all {} local IDs of type {} are used", shard, ObjectId::kMaxLocal, type_));
  }
  if (counter.next >= counter.reserved) {
    const uint64_t reserved = std::min(counter.next + kReservation, ObjectId::kMaxLocal + 1);
    if (auto status = StoreCounter(shard, reserved); !status.ok()) return status;
    counter.reserved = reserved;
  }
  return counter.next++;
}

absl::StatusOr<ObjectId> RocksObjectStore::NextId(const CreateOptions& options) {
  const auto on_shard = [this](uint32_t shard) -> absl::StatusOr<ObjectId> {
    const auto local = NextLocal(shard);
    if (!local.ok()) return local.status();
    return ObjectId::Make(shard, type_, *local);
  };
  if (options.near) return on_shard(static_cast<uint32_t>(*options.near >> 46));
  if (options.shard) return on_shard(*options.shard);
  // Round and round, past shards that are full.
  const uint32_t first = next_shard_++;
  if (family_->gate.log() != nullptr) {
    const auto shards = Spread();
    if (!shards.ok()) return shards.status();
    auto id = on_shard((*shards)[first % shards->size()]);
    for (size_t step = 1; step < shards->size() && absl::IsResourceExhausted(id.status()); ++step) {
      id = on_shard((*shards)[(first + step) % shards->size()]);
    }
    return id;
  }
  auto id = on_shard(first % kSpreadShards);
  for (uint32_t step = 1; step < kSpreadShards && absl::IsResourceExhausted(id.status()); ++step) {
    id = on_shard((first + step) % kSpreadShards);
  }
  return id;
}

absl::StatusOr<std::vector<uint32_t>> RocksObjectStore::Spread() {
  const std::lock_guard lock(counters_mutex_);
  if (used_.empty()) {
    const auto counters = Counters(*engine_, family_->settings->incarnation);
    if (!counters.ok()) return counters.status();
    for (const auto& [shard, next] : *counters) {
      if (next > 1) used_.push_back(shard);
    }
    // Without any object there is no better one than the first.
    if (used_.empty()) used_.push_back(0);
  }
  return used_;
}

absl::StatusOr<ObjectId> RocksObjectStore::UnusedId(const CreateOptions& options) {
  for (;;) {
    auto id = NextId(options);
    if (!id.ok()) return id;
    rocksdb::PinnableSlice there;
    const auto status = engine_->db().Get({}, family_->handle, IdKey(id->value()), &there);
    if (status.IsNotFound()) return id;
    if (!status.ok()) return ToStatus(status, "look for an object");
    // The counter is behind what a migration has brought.
    const auto shard = static_cast<uint32_t>(id->value() >> 46);
    rocksdb::ReadOptions read;
    read.total_order_seek = true;
    const std::unique_ptr<rocksdb::Iterator> it(engine_->db().NewIterator(read, family_->handle));
    it->SeekForPrev(IdKey(id->value() | ObjectId::kMaxLocal));
    if (!it->status().ok()) return ToStatus(it->status(), "look for the last object of a shard");
    uint64_t last = id->value();
    if (it->Valid() && it->key().size() == sizeof(uint64_t)) {
      last = std::max(last, ReadBigEndian<uint64_t>(it->key().ToStringView()));
    }
    if (auto raised = RaiseCounters({{shard, (last & ObjectId::kMaxLocal) + 1}}); !raised.ok()) return raised;
  }
}

absl::Status RocksObjectStore::Store(uint64_t id, std::string_view data, uint64_t timestamp,
                                     std::string_view request_id) {
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Put(family_->handle, IdKey(id), EncodeObject(data, timestamp));
      !status.ok()) {
    return ToStatus(status, "store an object");
  }
  if (DirtyLog* const log = family_->gate.log(); log != nullptr) {
    if (auto status = log->Add(batch, IdKey(id)); !status.ok()) return status;
  }
  if (!request_id.empty()) {
    if (auto status = requests_.Add(request_id, id, batch); !status.ok()) return status;
  }
  return engine_->Write(batch, family_->settings->sync);
}

absl::StatusOr<uint64_t> RocksObjectStore::Create(std::string_view data, const CreateOptions& options) {
  // Any lock tells a change of the gate that this is under way.
  std::unique_lock<std::shared_mutex> lock;
  std::shared_lock<std::shared_mutex> shared;
  if (!options.request_id.empty()) {
    lock = engine_->locks().Exclude(Fnv1a(options.request_id, family_->settings->incarnation));
    if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
    const auto made = requests_.Find(options.request_id);
    if (!made.ok()) return made.status();
    if (*made) return **made;
  }
  if (!lock) shared = engine_->locks().Share(next_lock_++);
  if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
  const auto id = UnusedId(options);
  if (!id.ok()) return id.status();
  if (auto status = Store(id->value(), data, WallClockMs(), options.request_id); !status.ok()) return status;
  return id->value();
}

absl::StatusOr<Object> RocksObjectStore::Get(uint64_t id, const ObjectReadOptions& options) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  rocksdb::PinnableSlice stored;
  const auto status = engine_->db().Get({}, family_->handle, IdKey(id), &stored);
  if (status.IsNotFound()) return NoObject(id);
  if (!status.ok()) return ToStatus(status, "read an object");
  return Visible(id, stored.ToStringView(), options.include_inactive);
}

std::vector<absl::StatusOr<Object>> RocksObjectStore::GetMany(std::span<const uint64_t> ids,
                                                              const ObjectReadOptions& options) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) {
    return std::vector<absl::StatusOr<Object>>(ids.size(), status);
  }
  std::vector<absl::StatusOr<Object>> objects;
  objects.reserve(ids.size());
  BatchBytes bytes;
  while (objects.size() < ids.size()) {
    const auto rest = ids.subspan(objects.size());
    if (auto status = bytes.full() ? BatchFullError() : CheckCall(); !status.ok()) {
      objects.resize(ids.size(), status);
      break;
    }
    GetTogether(rest.first(std::min(rest.size(), kTogether)), options, bytes, objects);
  }
  return objects;
}

void RocksObjectStore::GetTogether(std::span<const uint64_t> ids, const ObjectReadOptions& options,
                                   BatchBytes& bytes, std::vector<absl::StatusOr<Object>>& objects) {
  std::vector<std::string> keys;
  keys.reserve(ids.size());
  for (const uint64_t id : ids) keys.push_back(IdKey(id));
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(ids.size());
  std::vector<rocksdb::Status> statuses(ids.size());
  engine_->db().MultiGet({}, family_->handle, ids.size(), slices.data(), values.data(), statuses.data());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (bytes.full()) {
      objects.emplace_back(BatchFullError());
      continue;
    }
    if (statuses[i].ok()) bytes.Add(values[i].size());
    if (statuses[i].IsNotFound()) {
      objects.emplace_back(NoObject(ids[i]));
    } else if (!statuses[i].ok()) {
      objects.emplace_back(ToStatus(statuses[i], "read an object"));
    } else {
      objects.push_back(Visible(ids[i], values[i].ToStringView(), options.include_inactive));
    }
  }
}

absl::StatusOr<Object> RocksObjectStore::Update(uint64_t id, const ObjectTransform& transform,
                                                const UpdateOptions& options) {
  const auto lock = engine_->locks().Exclude(Hash(id));
  if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
  auto object = Get(id, {.include_inactive = options.include_inactive});
  if (!object.ok()) return object;
  if (options.expected_timestamp && *options.expected_timestamp != object->timestamp) {
    return absl::FailedPreconditionError(
        fmt::format("expected_timestamp: object {} was changed at {}, not {}", id, object->timestamp,
                    *options.expected_timestamp));
  }
  auto data = transform(object->data);
  if (!data.ok()) return data.status();
  object->data = *std::move(data);
  object->timestamp = std::max(WallClockMs(), object->timestamp + 1);
  if (auto status = Store(id, object->data, object->timestamp); !status.ok()) return status;
  return object;
}

absl::Status RocksObjectStore::Erase(uint64_t id) {
  const auto lock = engine_->locks().Exclude(Hash(id));
  if (auto status = family_->gate.CheckWrite(); !status.ok()) return status;
  if (auto object = Get(id, {.include_inactive = true}); !object.ok()) return object.status();
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Delete(family_->handle, IdKey(id)); !status.ok()) {
    return ToStatus(status, "delete an object");
  }
  if (DirtyLog* const log = family_->gate.log(); log != nullptr) {
    if (auto status = log->Add(batch, IdKey(id)); !status.ok()) return status;
  }
  return engine_->Write(batch, family_->settings->sync);
}

}  // namespace kvstore::rocks
