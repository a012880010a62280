#include "backends/rocksdb/engine.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <utility>

#include "backends/rocksdb/dirty_log.h"
#include "backends/rocksdb/seal.h"
#include "backends/rocksdb/status.h"
#include "base/clock.h"
#include "kvstore_api/big_endian.h"
#include "kvstore_api/in_doubt.h"

namespace kvstore::rocks {
namespace {

/// Prefix of the clock's ceilings in the default family: "clock/" be32(slot) -> be64(ceiling).
constexpr std::string_view kClockPrefix = "clock/";

/// Of StoredGate: "migration/" be64(incarnation) -> state, capture, be64(epoch), be64(ids).
constexpr std::string_view kGatePrefix = "migration/";
constexpr size_t kGateBytes = 1 + 1 + 8 + 8;
constexpr auto kLastState = static_cast<uint8_t>(EndpointState::kMoved);
/// IDs of a dirty log that one life of this process may give.
constexpr uint64_t kIdsOfALife = uint64_t{1} << 40;

std::string GateKey(uint64_t incarnation) {
  std::string key(kGatePrefix);
  AppendBigEndian(key, incarnation);
  return key;
}

std::string ClockKey(size_t slot) {
  std::string key(kClockPrefix);
  AppendBigEndian(key, static_cast<uint32_t>(slot));
  return key;
}

}  // namespace

// ---- migrations ----

absl::Status Engine::OpenGate(Family& family) {
  const auto stored = LoadGate(family.settings->incarnation);
  if (!stored.ok()) return stored.status();
  family.gate.epoch = stored->epoch;
  family.gate.capture = stored->capture;
  family.gate.ids = stored->ids;
  if (stored->capture) {
    if (auto status = OpenDirty(family); !status.ok()) return status;
  }
  family.gate.Set(stored->state, stored->capture);
  return absl::OkStatus();
}

absl::StatusOr<StoredGate> Engine::LoadGate(uint64_t incarnation) {
  std::string stored;
  const auto status = db_->Get({}, meta(), GateKey(incarnation), &stored);
  if (status.IsNotFound()) return StoredGate{};
  if (!status.ok()) return ToStatus(status, "read the state of a migration");
  if (stored.size() != kGateBytes || static_cast<uint8_t>(stored[0]) > kLastState) {
    return absl::DataLossError("the stored state of a migration does not decode");
  }
  const std::string_view rest(stored);
  return StoredGate{.state = static_cast<EndpointState>(stored[0]),
                    .capture = stored[1] != 0,
                    .epoch = ReadBigEndian<uint64_t>(rest.substr(2)),
                    .ids = ReadBigEndian<uint64_t>(rest.substr(10))};
}

absl::Status Engine::StoreGate(uint64_t incarnation, const StoredGate& gate) {
  std::string value;
  value.push_back(static_cast<char>(gate.state));
  value.push_back(gate.capture ? 1 : 0);
  AppendBigEndian(value, gate.epoch);
  AppendBigEndian(value, gate.ids);
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Put(meta(), GateKey(incarnation), value); !status.ok()) {
    return ToStatus(status, "keep the state of a migration");
  }
  return Write(batch, /*sync=*/true);
}

absl::Status Engine::RemoveGate(uint64_t incarnation) {
  rocksdb::WriteBatch batch;
  if (const auto status = batch.Delete(meta(), GateKey(incarnation)); !status.ok()) {
    return ToStatus(status, "forget the state of a migration");
  }
  return Write(batch, /*sync=*/true);
}

absl::Status Engine::OpenDirty(Family& family) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  const std::string name = DirtyLog::FamilyName(family.settings->name);
  // One that was left from before the last migration ended has IDs that will be given again.
  if (!family.gate.capture) {
    if (auto status = DropDirty(family); !status.ok()) return status;
  }
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  {
    const std::lock_guard lock(families_mutex_);
    if (const auto left = unknown_families_.find(name); left != unknown_families_.end()) {
      handle = left->second;
      unknown_families_.erase(left);
    }
  }
  if (handle == nullptr) {
    const auto created = db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), name, &handle);
    if (!created.ok()) return ToStatus(created, "make a dirty log");
  }
  // Of each life a range of its own.
  const uint64_t first = family.gate.ids;
  family.gate.ids = first + kIdsOfALife;
  family.gate.SetDirty(std::make_shared<DirtyLog>(db_.get(), handle, first));
  auto stored = LoadGate(family.settings->incarnation);
  if (!stored.ok()) return stored.status();
  stored->ids = family.gate.ids;
  return StoreGate(family.settings->incarnation, *stored);
}

absl::Status Engine::DropDirty(Family& family) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  const std::string name = DirtyLog::FamilyName(family.settings->name);
  const std::lock_guard lock(families_mutex_);
  if (const auto left = unknown_families_.find(name); left != unknown_families_.end()) {
    const auto dropped = DropHandle(left->second);
    if (!dropped.ok()) return ToStatus(dropped, "drop a dirty log");
    db_->DestroyColumnFamilyHandle(left->second);
    unknown_families_.erase(left);
    return absl::OkStatus();
  }
  if (!family.gate.dirty()) return absl::OkStatus();
  const auto dropped = DropHandle(family.gate.dirty()->handle());
  if (!dropped.ok()) return ToStatus(dropped, "drop a dirty log");
  family.gate.SetDirty(nullptr);
  return absl::OkStatus();
}

absl::Status Engine::LoadTimestamps() {
  std::map<size_t, uint64_t> ceilings;
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}, meta()));
  for (it->Seek(std::string(kClockPrefix)); it->Valid() && it->key().starts_with(std::string(kClockPrefix));
       it->Next()) {
    if (it->key().size() != kClockPrefix.size() + 4 || it->value().size() != 8) {
      return absl::DataLossError("the stored clock does not decode");
    }
    const size_t slot = ReadBigEndian<uint32_t>(it->key().ToStringView().substr(kClockPrefix.size()));
    if (slot > Timestamps::kSlots) return absl::DataLossError("the stored clock does not decode");
    ceilings[slot] = ReadBigEndian<uint64_t>(it->value().ToStringView());
  }
  if (!it->status().ok()) return ToStatus(it->status(), "read the stored clock");
  const auto store = [this](size_t slot, uint64_t ceiling) {
    rocksdb::WriteBatch batch;
    std::string value;
    AppendBigEndian(value, ceiling);
    const auto status =
        ceiling == 0 ? batch.Delete(meta(), ClockKey(slot)) : batch.Put(meta(), ClockKey(slot), value);
    if (!status.ok()) return ToStatus(status, "keep the clock");
    // Not synced: the put that needs this follows it in the same log, and syncs both if it must.
    return Write(batch, /*sync=*/false);
  };
  timestamps_ = std::make_unique<Timestamps>(ceilings, store, WallClockMs);
  return absl::OkStatus();
}

Engine::~Engine() {
  trimmer_->Stop();
  if (timestamps_) timestamps_->Close().IgnoreError();
  if (flush_at_close_) FlushAll(/*wait=*/true);
  families_.clear();
  if (!db_) return;
  for (const auto& [name, handle] : unknown_families_) db_->DestroyColumnFamilyHandle(handle);
  // Without a seal, on a full disk say, the next open goes without its check.
  if (db_->Close().ok()) WriteSeal(dir_.seal(), dir_.rocksdb()).IgnoreError();
}

absl::Status Engine::CreateFamily(const DatasetSpec& spec) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  if (const auto there = FindFamily(spec.name)) {
    if (there->settings->incarnation == spec.incarnation) return absl::OkStatus();
    // Left over from a dataset that the catalog names no longer.
    if (auto status = DropFamily(spec.name); !status.ok()) return status;
  }
  if (unknown_families_.contains(spec.name)) {
    return absl::FailedPreconditionError(
        fmt::format("dataset: '{}' is not in the catalog, and there is data under this name", spec.name));
  }
  auto settings = std::make_shared<FamilySettings>(spec);
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const auto created = db_->CreateColumnFamily(MakeFamilyOptions(spec, settings), spec.name, &handle);
  if (!created.ok()) return ToStatus(created, "create dataset " + spec.name);
  auto family = std::make_shared<Family>(db_.get(), handle, std::move(settings), idle_iterators_);
  if (auto status = OpenGate(*family); !status.ok()) return status;
  const std::lock_guard lock(families_mutex_);
  families_[spec.name] = std::move(family);
  return absl::OkStatus();
}

absl::Status Engine::DropFamily(const std::string& name) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  if (const auto unknown = unknown_families_.find(name);
      unknown != unknown_families_.end() && name != rocksdb::kDefaultColumnFamilyName) {
    // A drop or create that a crash cut short: the catalog named it no longer, or not yet.
    const auto dropped = DropHandle(unknown->second);
    if (!dropped.ok()) return ToStatus(dropped, "drop dataset " + name);
    db_->DestroyColumnFamilyHandle(unknown->second);
    unknown_families_.erase(unknown);
    return absl::OkStatus();
  }
  const auto family = FindFamily(name);
  if (!family) return absl::OkStatus();
  const auto dropped = DropHandle(family->handle);
  if (!dropped.ok()) return ToStatus(dropped, "drop dataset " + name);
  const std::lock_guard lock(families_mutex_);
  families_.erase(name);
  return absl::OkStatus();
}

std::shared_ptr<Family> Engine::FindFamily(const std::string& name) const {
  const std::lock_guard lock(families_mutex_);
  const auto found = families_.find(name);
  return found == families_.end() ? nullptr : found->second;
}

rocksdb::Status Engine::DropHandle(rocksdb::ColumnFamilyHandle* handle) {
  auto status = db_->DropColumnFamily(handle);
  if (!status.IsNoSpace()) return status;
  dir_.reserve().Release();
  Resume().PermitUncheckedError();
  return db_->DropColumnFamily(handle);
}

absl::Status Engine::CheckWritable() const {
  // RocksDB itself would write a manifest for a family, also where it was opened to read only.
  if (!read_only_) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "{}: the disk was full when the store was opened, which is to be read only; free some space "
      "and open it again",
      dir_.path().string()));
}

absl::Status Engine::Write(rocksdb::WriteBatch& batch, bool sync, bool makes_room) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  if (!makes_room && dir_.reserve().out() && !dir_.reserve().Restore()) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: no space left on device; free some space, or drop a dataset: the store goes on by itself",
        dir_.path().string()));
  }
  rocksdb::WriteOptions options;
  options.sync = sync;
  rocksdb::Status status = db_->Write(options, &batch);
  if (status.ok()) return absl::OkStatus();
  // The first write that finds the disk full fails. RocksDB then refuses all writes until it is told to go
  // on.
  if (status.severity() >= rocksdb::Status::kSoftError || status.IsNoSpace()) {
    if (Resume().ok()) status = db_->Write(options, &batch);
  }
  if (status.ok()) return absl::OkStatus();
  // It may be in the log, to be seen at the next start.
  return MarkInDoubt(ToStatus(status, "write"));
}

absl::Status Engine::CheckWrites() {
  if (auto status = CheckWritable(); !status.ok()) return status;
  if (!stopped_ && !dir_.reserve().out()) return absl::OkStatus();
  // That it may go on does not say that it can: a write that changes nothing tries.
  rocksdb::WriteBatch nothing;
  nothing.PutLogData({});
  absl::Status status = Write(nothing, /*sync=*/false);
  stopped_ = !status.ok();
  return status;
}

rocksdb::Status Engine::Resume() {
  const std::lock_guard lock(resume_mutex_);
  auto status = db_->Resume();
  if (status.ok()) stopped_ = false;
  return status;
}

LogsOnDisk Engine::Logs() const {
  LogsOnDisk logs;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(dir_.rocksdb(), error)) {
    if (file.path().extension() != ".log") continue;
    ++logs.files;
    // One that goes meanwhile counts for nothing.
    if (const auto size = file.file_size(error); !error) logs.bytes += size;
  }
  return logs;
}

}  // namespace kvstore::rocks
