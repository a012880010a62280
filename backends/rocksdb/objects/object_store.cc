#include "backends/rocksdb/objects/object_store.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend_api/batch_bytes.h"
#include "backends/rocksdb/engine/recorder.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/objects/page_scan.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "base/hash.h"
#include "idgen/object_id.h"
#include "json/json.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::rocks {
namespace {

constexpr size_t kHeaderBytes = 1 + sizeof(uint64_t);
constexpr char kInactive = 1;  // a flag; stored: never renumber

/// So many objects of a batch are read by one MultiGet.
constexpr size_t kMaxGroupObjects = 64;

absl::Status NoObjectError(uint64_t id) {
  return absl::NotFoundError(fmt::format("object_id: there is no object {}", id));
}

/// Decodes a stored object; NOT_FOUND if it is inactive and the caller does not want such objects.
absl::StatusOr<Object> DecodeVisible(uint64_t id, std::string_view stored, bool include_inactive) {
  auto object = DecodeObject(id, stored);
  if (object.ok() && !include_inactive && (stored[0] & kInactive) != 0) return InactiveObjectError(id);
  return object;
}

std::string IdKey(uint64_t id) {
  std::string key;
  AppendBigEndian(key, id);
  return key;
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

uint64_t RocksObjectStore::Hash(uint64_t id) const {
  return Fnv1a(IdKey(id), family_->settings->incarnation);
}

absl::Status RocksObjectStore::DropState(Engine& engine, uint64_t incarnation) {
  rocksdb::WriteBatch batch;
  if (auto status = LocalIds::Drop(engine, incarnation, batch); !status.ok()) return status;
  if (auto status = Requests::Drop(engine, incarnation, batch); !status.ok()) return status;
  return engine.Write(batch, /*sync=*/false, /*makes_room=*/true);
}

absl::StatusOr<ObjectId> RocksObjectStore::NextId(const CreateOptions& options) {
  const auto on_shard = [this](uint32_t shard) -> absl::StatusOr<ObjectId> {
    const auto local = ids_->Next(shard);
    if (!local.ok()) return local.status();
    return ObjectId::Make(shard, type_, *local);
  };
  if (options.near) return on_shard(ObjectId::ShardOf(*options.near));
  if (options.shard) return on_shard(*options.shard);
  // Take the shards in turn, and skip those that are full.
  const uint32_t first = next_shard_++;
  if (family_->gate.capture_log() != nullptr) {
    const auto shards = ids_->UsedShards();
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

absl::StatusOr<ObjectId> RocksObjectStore::UnusedId(const CreateOptions& options) {
  for (;;) {
    auto id = NextId(options);
    if (!id.ok()) return id;
    rocksdb::PinnableSlice there;
    const auto status = engine_->db().Get({}, family_->handle, IdKey(id->value()), &there);
    if (status.IsNotFound()) return id;
    if (!status.ok()) return ToStatus(status, "look for an object");
    // A migration has brought objects with IDs that the counter has not reached: raise it above the last one.
    const uint32_t shard = id->shard();
    rocksdb::ReadOptions read;
    read.total_order_seek = true;
    const std::unique_ptr<rocksdb::Iterator> it(engine_->db().NewIterator(read, family_->handle));
    it->SeekForPrev(IdKey(id->value() | ObjectId::kMaxLocal));
    if (!it->status().ok()) return ToStatus(it->status(), "look for the last object of a shard");
    uint64_t last = id->value();
    if (it->Valid() && it->key().size() == sizeof(uint64_t)) {
      last = std::max(last, ReadBigEndian<uint64_t>(it->key().ToStringView()));
    }
    if (auto raised = ids_->RaiseTo({.shards = {{shard, (last & ObjectId::kMaxLocal) + 1}}}); !raised.ok())
      return raised;
  }
}

absl::Status RocksObjectStore::Store(uint64_t id, std::string_view data, uint64_t timestamp,
                                     std::string_view request_id) {
  rocksdb::WriteBatch batch;
  Recorder recorder(*family_);
  if (const auto status = batch.Put(family_->handle, IdKey(id), EncodeObject(data, timestamp));
      !status.ok()) {
    return ToStatus(status, "store an object");
  }
  if (auto status = recorder.Add(batch, IdKey(id)); !status.ok()) return status;
  if (!request_id.empty()) {
    if (auto status = requests_.Add(request_id, id, batch); !status.ok()) return status;
  }
  return recorder.Write(*engine_, batch, family_->settings->sync);
}

absl::StatusOr<uint64_t> RocksObjectStore::Create(std::string_view data, const CreateOptions& options) {
  // Any row lock makes a change of the gate's state wait for this write.
  RowLocks::Lock lock;
  RowLocks::SharedLock shared;
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
  if (status.IsNotFound()) return NoObjectError(id);
  if (!status.ok()) return ToStatus(status, "read an object");
  return DecodeVisible(id, stored.ToStringView(), options.include_inactive);
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
    GetGroup(rest.first(std::min(rest.size(), kMaxGroupObjects)), options, bytes, objects);
  }
  return objects;
}

void RocksObjectStore::GetGroup(std::span<const uint64_t> ids, const ObjectReadOptions& options,
                                BatchBytes& bytes, std::vector<absl::StatusOr<Object>>& objects) {
  std::vector<std::string> keys;
  keys.reserve(ids.size());
  for (const uint64_t id : ids) keys.push_back(IdKey(id));
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(ids.size());
  std::vector<rocksdb::Status> statuses(ids.size());
  rocksdb::ReadOptions read;
  // The values after this limit are not read: their status is Aborted.
  read.value_size_soft_limit = bytes.left();
  engine_->db().MultiGet(read, family_->handle, ids.size(), slices.data(), values.data(), statuses.data());
  const bool first = objects.empty();
  // RocksDB reads in the order of the keys, so that the first of the batch may be after others.
  if (first && statuses[0].IsAborted()) {
    statuses[0] = engine_->db().Get({}, family_->handle, slices[0], &values[0]);
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (statuses[i].IsAborted() || (bytes.full() && !(first && i == 0))) {
      objects.emplace_back(BatchFullError());
      continue;
    }
    if (statuses[i].ok()) bytes.Add(values[i].size());
    if (statuses[i].IsNotFound()) {
      objects.emplace_back(NoObjectError(ids[i]));
    } else if (!statuses[i].ok()) {
      objects.emplace_back(ToStatus(statuses[i], "read an object"));
    } else {
      objects.push_back(DecodeVisible(ids[i], values[i].ToStringView(), options.include_inactive));
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
  Recorder recorder(*family_);
  if (auto status = recorder.Add(batch, IdKey(id)); !status.ok()) return status;
  return recorder.Write(*engine_, batch, family_->settings->sync);
}

absl::StatusOr<ObjectScanPage> RocksObjectStore::Scan(const IdRange& range,
                                                      const ObjectScanOptions& options) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  PageScan scan(*engine_, *family_, IdKey(range.start), IdKey(range.end));
  ObjectScanPage page;
  size_t bytes = 0;
  for (;; scan.Next()) {
    const auto at = scan.Find();
    if (!at.ok()) return at.status();
    if (*at == PageScan::At::kEnd) return page;
    if (scan.key().size() != sizeof(uint64_t))
      return absl::DataLossError("a stored key is not that of an object");
    const auto id = ReadBigEndian<uint64_t>(scan.key());
    if (*at == PageScan::At::kPaused || page.objects.size() == options.limit) {
      page.next = id;
      return page;
    }
    auto object = DecodeObject(id, scan.value());
    if (!object.ok()) return object.status();
    if (!options.include_inactive && (scan.value()[0] & kInactive) != 0) continue;
    bytes += object->data.size();
    if (!page.objects.empty() && bytes > options.max_bytes) {
      page.next = id;
      return page;
    }
    page.objects.push_back(*std::move(object));
  }
}

absl::StatusOr<std::vector<Partition>> RocksObjectStore::Partitions(size_t wanted) {
  if (auto status = family_->gate.CheckRead(); !status.ok()) return status;
  return PartitionIds(*engine_, *family_, wanted);
}

}  // namespace kvstore::rocks
