#include "backends/rocksdb/engine.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <set>
#include <utility>
#include <vector>

#include "backends/rocksdb/cell_key.h"
#include "backends/rocksdb/expired_filter.h"
#include "backends/rocksdb/few_files.h"
#include "backends/rocksdb/info_log.h"
#include "backends/rocksdb/reclaim.h"
#include "backends/rocksdb/seal.h"
#include "backends/rocksdb/status.h"
#include "base/clock.h"
#include "base/files.h"
#include "kvstore_api/big_endian.h"
#include "kvstore_api/in_doubt.h"

namespace kvstore::rocks {
namespace {

constexpr uint64_t kDaySeconds = 86'400;
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

/// The prefix that blooms are made of: enc(row). Every key of a cell has one.
class RowPrefix : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "kvstore.RowPrefix"; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return EncodedSize(key.ToStringView()).has_value();
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), EncodedSize(key.ToStringView()).value_or(key.size())};
  }
};

rocksdb::CompressionType ToRocks(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return rocksdb::kNoCompression;
    case Compression::kLz4:
      return rocksdb::kLZ4Compression;
    case Compression::kZstd:
      return rocksdb::kZSTD;
  }
  return rocksdb::kNoCompression;
}

/// A cache whose parts are no smaller than an index block of a large file can be, which would else be read
/// again and again.
std::shared_ptr<rocksdb::Cache> NewCache(size_t bytes) {
  constexpr size_t kMinPartBytes = size_t{8} << 20;
  constexpr int kMaxPartBits = 6;
  int part_bits = 0;
  while (part_bits < kMaxPartBits && bytes >> (part_bits + 1) >= kMinPartBytes) ++part_bits;
  return rocksdb::NewLRUCache(bytes, part_bits);
}

/// Keeps RocksDB from waiting, in steps of five seconds and until there are 64 MiB, for a full disk to have
/// space again, and from refusing to be told to go on while it waits: the next write tells it (see
/// Engine::Write). Where no write would fail, because only compactions have, it still waits by itself.
class ResumedByWrites : public rocksdb::EventListener {
 public:
  /// stopped  set while no write is taken; must outlive it.
  explicit ResumedByWrites(std::atomic<bool>& stopped) : stopped_(stopped) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    if (error->severity() > rocksdb::Status::kSoftError) stopped_ = true;
  }
  void OnErrorRecoveryEnd(const rocksdb::BackgroundErrorRecoveryInfo& info) override {
    if (info.new_bg_error.ok()) stopped_ = false;
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status,
                            bool* auto_recovery) override {
    if (reason != rocksdb::BackgroundErrorReason::kCompaction) *auto_recovery = false;
  }

 private:
  std::atomic<bool>& stopped_;
};

std::string ClockKey(size_t slot) {
  std::string key(kClockPrefix);
  AppendBigEndian(key, static_cast<uint32_t>(slot));
  return key;
}

}  // namespace

Engine::Engine(DataDir dir, const EngineOptions& options)
    : dir_(std::move(dir)),
      cache_(NewCache(options.cache_bytes)),
      write_buffers_(std::make_shared<rocksdb::WriteBufferManager>(options.write_buffer_bytes)),
      trimmer_(std::make_shared<Trimmer>()),
      idle_iterators_(std::make_shared<IdleIterators>()),
      statistics_(rocksdb::CreateDBStatistics()),
      files_(NewEnvOfFewFiles()) {
  // Counters cost nothing that can be measured; timers and histograms would.
  statistics_->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
}

rocksdb::DBOptions Engine::MakeDbOptions() {
  rocksdb::DBOptions options;
  options.env = files_.get();
  // It does not wait for descriptors by itself either (see ResumedByWrites).
  options.max_bgerror_resume_count = 0;
  options.create_if_missing = true;
  options.listeners = {std::make_shared<ResumedByWrites>(stopped_), idle_iterators_};
  options.info_log = OpenInfoLog(dir_.rocksdb() / "LOG");
  options.max_background_jobs = 4;
  options.statistics = statistics_;
  options.bytes_per_sync = size_t{1} << 20;
  options.write_buffer_manager = write_buffers_;
  // A torn tail of the log is what a crash leaves; damage before the tail is an error, and not skipped
  // silently.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  return options;
}

rocksdb::ColumnFamilyOptions Engine::MakeFamilyOptions(
    const DatasetSpec& spec, const std::shared_ptr<FamilySettings>& settings) const {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache_;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, /*use_block_based_builder=*/false));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.format_version = 5;
  // What a dataset takes of the memory for writes as soon as it is open, so that hundreds of datasets leave
  // room for the writes themselves: a block, and a bloom of 64 KiB, good for some 50,000 rows between two
  // flushes.
  options.arena_block_size = size_t{128} << 10;
  options.memtable_prefix_bloom_size_ratio = 0.001;
  options.compression = ToRocks(spec.compression);
  options.level_compaction_dynamic_level_bytes = true;
  options.periodic_compaction_seconds = kDaySeconds;
  if (spec.blob_threshold > 0) {
    options.enable_blob_files = true;
    options.min_blob_size = spec.blob_threshold;
    options.blob_compression_type = options.compression;
    options.enable_blob_garbage_collection = true;
  }
  switch (spec.shape) {
    case Shape::kRows:
      options.prefix_extractor = std::make_shared<RowPrefix>();
      table.whole_key_filtering = false;
      options.compaction_filter_factory = std::make_shared<ExpiredFilterFactory>(settings, trimmer_);
      break;
    case Shape::kMappings:
      options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(sizeof(uint64_t)));
      break;
    case Shape::kObjects:
      break;
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

absl::StatusOr<std::shared_ptr<Engine>> Engine::Open(DataDir dir, std::span<const DatasetSpec> known,
                                                     std::span<const DatasetSpec> moving,
                                                     const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine(std::move(dir), options));
  if (auto status = engine->OpenDb(known, moving); !status.ok()) return status;
  if (auto status = engine->LoadTimestamps(); !status.ok()) return status;
  Engine* const self = engine.get();
  engine->trimmer_->Start([self](const std::string& dataset, const std::string& column) {
    // What fails here, on a full disk say, is suggested again by the next compaction.
    if (const auto family = self->FindFamily(dataset))
      TrimColumn(*self, *family, column).status().IgnoreError();
  });
  return engine;
}

absl::Status Engine::OpenDb(std::span<const DatasetSpec> known, std::span<const DatasetSpec> moving) {
  const std::filesystem::path path = dir_.rocksdb();
  std::error_code error;
  const bool exists = std::filesystem::exists(path / "CURRENT", error);
  if (error) return FileError(path, "look into", error.value());
  if (!exists && !known.empty()) {
    return absl::DataLossError(fmt::format("{}: there are {} datasets in the catalog, and no database here",
                                           path.string(), known.size()));
  }
  if (!std::filesystem::create_directories(path, error) && error)
    return FileError(path, "create", error.value());
  const rocksdb::DBOptions db_options = MakeDbOptions();
  std::vector<std::string> stored;
  if (exists) {
    if (auto status = CheckSeal(dir_.seal(), path); !status.ok()) return status;
    const auto listed = rocksdb::DB::ListColumnFamilies(db_options, path.string(), &stored);
    if (!listed.ok()) return ToStatus(listed, "read " + path.string());
  }
  std::map<std::string, std::shared_ptr<FamilySettings>> settings;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  std::set<std::string> unknown(stored.begin(), stored.end());
  for (const DatasetSpec& spec : known) {
    if (unknown.erase(spec.name) == 0) {
      return absl::DataLossError(fmt::format("{}: dataset '{}' is in the catalog, and its data is not here",
                                             path.string(), spec.name));
    }
    const auto live = settings[spec.name] = std::make_shared<FamilySettings>(spec);
    descriptors.emplace_back(spec.name, MakeFamilyOptions(spec, live));
  }
  for (const DatasetSpec& spec : moving) {
    if (unknown.erase(spec.name) == 0) continue;
    const auto live = settings[spec.name] = std::make_shared<FamilySettings>(spec);
    descriptors.emplace_back(spec.name, MakeFamilyOptions(spec, live));
  }
  unknown.insert(rocksdb::kDefaultColumnFamilyName);
  for (const std::string& name : unknown) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());

  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const auto opened = rocksdb::DB::Open(db_options, path.string(), descriptors, &handles, &db);
  if (!opened.ok()) return ToStatus(opened, "open " + path.string());
  db_.reset(db);
  for (size_t i = 0; i < handles.size(); ++i) {
    const std::string& name = descriptors[i].name;
    if (const auto live = settings.find(name); live != settings.end()) {
      families_[name] = std::make_shared<Family>(db, handles[i], live->second, idle_iterators_);
    } else {
      unknown_families_[name] = handles[i];
    }
  }
  for (const auto& [name, family] : families_) {
    if (auto status = OpenGate(*family); !status.ok()) return status;
  }
  return absl::OkStatus();
}

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
  const std::string name = DirtyLog::FamilyName(family.settings->name);
  const std::lock_guard lock(families_mutex_);
  if (const auto left = unknown_families_.find(name); left != unknown_families_.end()) {
    const auto dropped = db_->DropColumnFamily(left->second);
    if (!dropped.ok()) return ToStatus(dropped, "drop a dirty log");
    db_->DestroyColumnFamilyHandle(left->second);
    unknown_families_.erase(left);
    return absl::OkStatus();
  }
  if (!family.gate.dirty()) return absl::OkStatus();
  const auto dropped = db_->DropColumnFamily(family.gate.dirty()->handle());
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
  families_.clear();
  if (!db_) return;
  for (const auto& [name, handle] : unknown_families_) db_->DestroyColumnFamilyHandle(handle);
  // Without a seal, on a full disk say, the next open goes without its check.
  if (db_->Close().ok()) WriteSeal(dir_.seal(), dir_.rocksdb()).IgnoreError();
}

absl::Status Engine::CreateFamily(const DatasetSpec& spec) {
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
  if (const auto unknown = unknown_families_.find(name);
      unknown != unknown_families_.end() && name != rocksdb::kDefaultColumnFamilyName) {
    // A drop or create that a crash cut short: the catalog named it no longer, or not yet.
    const auto dropped = db_->DropColumnFamily(unknown->second);
    if (!dropped.ok()) return ToStatus(dropped, "drop dataset " + name);
    db_->DestroyColumnFamilyHandle(unknown->second);
    unknown_families_.erase(unknown);
    return absl::OkStatus();
  }
  const auto family = FindFamily(name);
  if (!family) return absl::OkStatus();
  const auto dropped = db_->DropColumnFamily(family->handle);
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

absl::Status Engine::Write(rocksdb::WriteBatch& batch, bool sync) {
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
  if (!stopped_) return absl::OkStatus();
  // That it may go on does not say that it can: a write that changes nothing tries.
  rocksdb::WriteBatch nothing;
  nothing.PutLogData({});
  auto status = Resume();
  if (status.ok()) status = db_->Write({}, &nothing);
  stopped_ = !status.ok();
  return ToStatus(status, "write");
}

rocksdb::Status Engine::Resume() {
  const std::lock_guard lock(resume_mutex_);
  auto status = db_->Resume();
  if (status.ok()) stopped_ = false;
  return status;
}

}  // namespace kvstore::rocks
