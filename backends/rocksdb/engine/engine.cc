#include "backends/rocksdb/engine/engine.h"

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <optional>
#include <utility>

#include "backend_api/outcome.h"
#include "backend_api/prompt_scope.h"
#include "backends/rocksdb/engine/checkpoint.h"
#include "backends/rocksdb/engine/seal.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/engine/write_log.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "base/fail_point.h"

namespace kvstore::rocks {
namespace {

/// Prefix of the clock's ceilings in the default family: "clock/" be32(slot) -> be64(ceiling).
constexpr std::string_view kClockPrefix = "clock/";

/// Counts as long as it lives.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { count_.fetch_add(1); }
  ~Counted() { count_.fetch_sub(1); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

std::string ClockKey(size_t slot) {
  std::string key(kClockPrefix);
  AppendBigEndian(key, static_cast<uint32_t>(slot));
  return key;
}

}  // namespace

// ---- auxiliary families ----

absl::StatusOr<rocksdb::ColumnFamilyHandle*> Engine::OpenAuxiliaryFamily(const std::string& name) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  {
    const MutexLock lock(families_mutex_);
    if (const auto left = unknown_families_.find(name); left != unknown_families_.end()) {
      rocksdb::ColumnFamilyHandle* const handle = left->second;
      unknown_families_.erase(left);
      auxiliary_.insert(handle);
      return handle;
    }
  }
  const auto created = CreateHandle(rocksdb::ColumnFamilyOptions(), name);
  if (!created.ok()) return created.status();
  const MutexLock lock(families_mutex_);
  auxiliary_.insert(*created);
  return *created;
}

absl::StatusOr<rocksdb::ColumnFamilyHandle*> Engine::CreateHandle(const rocksdb::ColumnFamilyOptions& options,
                                                                  const std::string& name) {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const auto created = db_->CreateColumnFamily(options, name, &handle);
  if (!created.ok()) return ToStatus(created, "create column family " + name);
  const MutexLock lock(families_mutex_);
  family_names_[handle->GetID()] = name;
  return handle;
}

absl::Status Engine::DropAuxiliaryFamily(const std::string& name, rocksdb::ColumnFamilyHandle* open) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  const auto unknown = DropUnknown(name);
  if (!unknown.ok()) return unknown.status();
  if (*unknown || open == nullptr) return absl::OkStatus();
  const auto dropped = DropHandle(open);
  if (!dropped.ok()) return ToStatus(dropped, "drop column family " + name);
  const MutexLock lock(families_mutex_);
  auxiliary_.erase(open);
  return absl::OkStatus();
}

void Engine::CloseAuxiliaryFamily(rocksdb::ColumnFamilyHandle* handle) {
  {
    const MutexLock lock(families_mutex_);
    auxiliary_.erase(handle);
    if (family_names_.contains(handle->GetID())) {
      unknown_families_[handle->GetName()] = handle;
      return;
    }
  }
  db_->DestroyColumnFamilyHandle(handle);
}

absl::StatusOr<bool> Engine::DropUnknown(const std::string& name) {
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  {
    const MutexLock lock(families_mutex_);
    const auto unknown = unknown_families_.find(name);
    if (unknown == unknown_families_.end() || name == rocksdb::kDefaultColumnFamilyName) return false;
    handle = unknown->second;
    unknown_families_.erase(unknown);
  }
  const auto dropped = DropHandle(handle);
  if (!dropped.ok()) {
    const MutexLock lock(families_mutex_);
    unknown_families_.emplace(name, handle);
    return ToStatus(dropped, "drop column family " + name);
  }
  db_->DestroyColumnFamilyHandle(handle);
  return true;
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
    if (!status.ok()) return ToStatus(status, "store the clock");
    // Not synced: the put that needs this ceiling follows it in the same log, and syncs both if it must.
    return Write(batch, /*sync=*/false);
  };
  timestamps_ = std::make_unique<Timestamps>(ceilings, store, WallClockMs);
  return absl::OkStatus();
}

Engine::~Engine() {
  Reached("engine.close");
  trimmer_->Stop();
  if (timestamps_) timestamps_->Close().IgnoreError();
  if (flush_at_close_) FlushAll(/*wait=*/true);
  families_.clear();
  if (!db_) return;
  for (const auto& [name, handle] : unknown_families_) db_->DestroyColumnFamilyHandle(handle);
  // If the seal cannot be written, on a full disk for example, the next open goes without its check.
  if (db_->Close().ok()) WriteSeal(dir_.seal(), dir_.rocksdb()).IgnoreError();
}

bool Engine::HasUnknownFamily(const std::string& name) const {
  const MutexLock lock(families_mutex_);
  return unknown_families_.contains(name);
}

absl::StatusOr<bool> Engine::HasData(const std::string& unknown) const {
  if (unknown == rocksdb::kDefaultColumnFamilyName) return true;  // the engine's own
  const MutexLock lock(families_mutex_);
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}, unknown_families_.at(unknown)));
  it->SeekToFirst();
  if (!it->status().ok()) return ToStatus(it->status(), "look for data of " + unknown);
  return it->Valid();
}

absl::Status Engine::CreateFamily(const DatasetSpec& spec) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  if (const auto there = FindFamily(spec.name)) {
    if (there->settings->incarnation == spec.incarnation) return absl::OkStatus();
    // The family is left over from an earlier dataset that the catalog no longer names.
    if (auto status = DropFamily(spec.name); !status.ok()) return status;
  }
  if (HasUnknownFamily(spec.name)) {
    const auto data = HasData(spec.name);
    if (!data.ok()) return data.status();
    if (*data) {
      return absl::FailedPreconditionError(
          fmt::format("dataset: '{}' is not in the catalog, and there is data under this name", spec.name));
    }
    // A create was cut short before the catalog named the dataset.
    if (const auto dropped = DropUnknown(spec.name); !dropped.ok()) return dropped.status();
  }
  auto settings = std::make_shared<FamilySettings>(spec);
  const auto handle = CreateHandle(MakeFamilyOptions(spec, settings), spec.name);
  if (!handle.ok()) return handle.status();
  auto family = std::make_shared<Family>(db_.get(), *handle, std::move(settings), idle_iterators_);
  if (auto status = hooks_.opened(*this, *family); !status.ok()) {
    // RocksDB would refuse to create it again, so it must be dropped, now or by the create or drop that is
    // next.
    family->leaves_handle = true;
    family.reset();
    CloseAuxiliaryFamily(*handle);
    DropUnknown(spec.name).status().IgnoreError();
    return status;
  }
  const MutexLock lock(families_mutex_);
  families_[spec.name] = std::move(family);
  return absl::OkStatus();
}

absl::Status Engine::DropFamily(const std::string& name) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  // A crash may have interrupted a drop or a create: the catalog did not name the dataset when the engine was
  // opened.
  const auto unknown = DropUnknown(name);
  if (!unknown.ok()) return unknown.status();
  if (*unknown) return absl::OkStatus();
  const auto family = FindFamily(name);
  if (!family) return absl::OkStatus();
  Gate& gate = family->gate;
  const EndpointState before = gate.state();
  const bool captures = gate.capture_log() != nullptr;
  {
    // Once all locks are held no write of a client is in flight, and later ones are refused. RocksDB would
    // take one that meets the drop for damage, and refuse all writes of the store from then on.
    const auto all = locks_.ExcludeAll();
    gate.SetState(EndpointState::kAbsent, /*captures=*/false);
  }
  const auto dropped = DropHandle(family->handle);
  if (!dropped.ok()) {
    const auto all = locks_.ExcludeAll();
    gate.SetState(before, captures);
    return ToStatus(dropped, "drop dataset " + name);
  }
  const MutexLock lock(families_mutex_);
  families_.erase(name);
  return absl::OkStatus();
}

std::shared_ptr<Family> Engine::FindFamily(const std::string& name) const {
  const MutexLock lock(families_mutex_);
  const auto found = families_.find(name);
  return found == families_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Family>> Engine::AllFamilies() const {
  std::vector<std::shared_ptr<Family>> families;
  const MutexLock lock(families_mutex_);
  families.reserve(families_.size());
  for (const auto& [name, family] : families_) families.push_back(family);
  return families;
}

rocksdb::Status Engine::DropHandle(rocksdb::ColumnFamilyHandle* handle) {
  auto status = db_->DropColumnFamily(handle);
  if (status.IsNoSpace()) {
    dir_.reserve().Release();
    Resume().PermitUncheckedError();
    status = db_->DropColumnFamily(handle);
  }
  if (status.ok()) {
    const MutexLock lock(families_mutex_);
    family_names_.erase(handle->GetID());
  }
  return status;
}

absl::Status Engine::CheckWritable() const {
  // RocksDB would write to the manifest for a new family even when it is open to be read only.
  if (!read_only_) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "{}: writes are refused: the disk was full when the store was opened, so it is open to be read only; "
      "free some space, and open it again",
      dir_.path().string()));
}

absl::Status Engine::Write(rocksdb::WriteBatch& batch, bool sync, bool makes_room) {
  if (auto status = CheckWritable(); !status.ok()) return status;
  const bool prompt = IsPrompt();
  // Whoever waits makes room, or has RocksDB accept writes again.
  const bool was_stopped = stopped_.load(std::memory_order_relaxed);
  if (prompt && (was_stopped || dir_.reserve().released())) return WouldWaitError();
  if (!makes_room && dir_.reserve().released() && !dir_.reserve().Restore()) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: no space left on device; free some space, or drop a dataset: writes then succeed "
                    "again by themselves",
                    dir_.path().string()));
  }
  // RocksDB would write both together, or this one after the other.
  if (prompt && (sync || syncing_.load() > 0)) return WouldWaitError();
  std::optional<Counted> syncing;
  if (sync) syncing.emplace(syncing_);
  rocksdb::WriteOptions options;
  options.sync = sync;
  options.no_slowdown = prompt;
  // Writes of clients do not meet the drop of their dataset (Gate). Should another one, RocksDB, which has it
  // in the log by then, must not refuse all writes until the store is opened again.
  options.ignore_missing_column_families = true;
  rocksdb::Status status = db_->Write(options, &batch);
  if (prompt && status.IsIncomplete()) return WouldWaitError();
  // The first write that finds the disk full fails, and RocksDB then refuses all writes until it is resumed.
  if (!status.ok() && (status.severity() >= rocksdb::Status::kSoftError || status.IsNoSpace())) {
    // A prompt write leaves that to the next one, which then waits.
    stopped_ = true;
    if (!prompt && Resume().ok()) status = db_->Write(options, &batch);
  }
  if (status.ok()) {
    if (was_stopped) stopped_ = false;
    return absl::OkStatus();
  }
  // The batch may be in the log, and so appear at the next start.
  return MarkInDoubt(ToStatus(status, "write"));
}

absl::Status Engine::CheckWrites() {
  if (auto status = CheckWritable(); !status.ok()) return status;
  if (!stopped_ && !dir_.reserve().released()) return absl::OkStatus();
  // A resumed database may still be unable to write, so a write that changes nothing tries.
  rocksdb::WriteBatch nothing;
  nothing.PutLogData({});
  absl::Status status = Write(nothing, /*sync=*/false);
  stopped_ = !status.ok();
  return status;
}

rocksdb::Status Engine::Resume() {
  const MutexLock lock(resume_mutex_);
  auto status = db_->Resume();
  if (status.ok()) stopped_ = false;
  return status;
}

absl::StatusOr<std::vector<LoggedWrite>> Engine::ReadWrites(uint64_t after, size_t max_bytes) {
  return rocks::ReadWrites(*db_, after, max_bytes);
}

CatalogFile Engine::CatalogFileFor(bool has_datasets) const {
  if (options_.catalog_shared) return CatalogFile::kElsewhere;
  return has_datasets ? CatalogFile::kNeeded : CatalogFile::kMayLack;
}

absl::StatusOr<LogSchema> Engine::Schema() const {
  LogSchema schema;
  {
    const MutexLock lock(families_mutex_);
    schema.families = family_names_;
  }
  auto files = ReadStoreFiles(dir_, CatalogFileFor(/*has_datasets=*/schema.families.size() > 1));
  if (!files.ok()) return files.status();
  schema.files = *std::move(files);
  return schema;
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Engine::MakeCheckpoint() {
  if (auto status = CheckWritable(); !status.ok()) return status;
  return CheckpointDirectory(dir_, *db_, ++checkpoints_, CatalogFileFor(!AllFamilies().empty()),
                             Logs().bytes);
}

LogsOnDisk Engine::Logs() const {
  LogsOnDisk logs;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(dir_.rocksdb(), error)) {
    if (file.path().extension() != ".log") continue;
    ++logs.files;
    // A log that is deleted meanwhile counts for nothing.
    if (const auto size = file.file_size(error); !error) logs.bytes += size;
  }
  return logs;
}

}  // namespace kvstore::rocks
