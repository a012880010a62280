#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <set>
#include <utility>
#include <vector>

#include "backends/rocksdb/cell_key.h"
#include "backends/rocksdb/dirty_log.h"
#include "backends/rocksdb/engine.h"
#include "backends/rocksdb/expired_filter.h"
#include "backends/rocksdb/file_system.h"
#include "backends/rocksdb/info_log.h"
#include "backends/rocksdb/log_repair.h"
#include "backends/rocksdb/object_store.h"
#include "backends/rocksdb/reclaim.h"
#include "backends/rocksdb/seal.h"
#include "backends/rocksdb/status.h"
#include "base/files.h"

/// How an engine is opened: its options, and what an open makes of what it finds.
namespace kvstore::rocks {
namespace {

constexpr uint64_t kDaySeconds = 86'400;

/// Every life of a store leaves a log behind until what it holds is in tables, and each open reads them
/// again. Beyond so many, or so much, an open has them flushed: at once if they hold little, else in the
/// background, and to the end before it is closed.
constexpr size_t kMaxOldLogs = 8;
constexpr uint64_t kFlushedAtOnce = uint64_t{16} << 20;
/// Of one family, more than logs hold: nothing is flushed while they are read.
constexpr size_t kUnflushedBytes = size_t{8} << 30;

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
  /// stopped  set when writes may not be taken any more; must outlive it.
  explicit ResumedByWrites(std::atomic<bool>& stopped) : stopped_(stopped) {}

  // How severe it is, is not known yet.
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status*) override { stopped_ = true; }
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

/// 0 if there is none.
uint64_t SizeOf(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error ? 0 : size;
}

}  // namespace

Engine::Engine(DataDir dir, const EngineOptions& options)
    : dir_(std::move(dir)),
      options_(options),
      cache_(NewCache(options.cache_bytes)),
      write_buffers_(std::make_shared<rocksdb::WriteBufferManager>(options.write_buffer_bytes)),
      trimmer_(std::make_shared<Trimmer>()),
      idle_iterators_(std::make_shared<IdleIterators>()),
      statistics_(rocksdb::CreateDBStatistics()) {
  // Counters cost nothing that can be measured; timers and histograms would.
  statistics_->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
}

rocksdb::DBOptions Engine::MakeDbOptions() {
  rocksdb::DBOptions options;
  options.env = StoreEnv();
  // It does not wait for descriptors by itself either (see ResumedByWrites).
  options.max_bgerror_resume_count = 0;
  options.create_if_missing = true;
  options.listeners = {std::make_shared<ResumedByWrites>(stopped_), idle_iterators_};
  options.info_log = OpenInfoLog(dir_.rocksdb() / "LOG");
  options.max_background_jobs = 4;
  options.statistics = statistics_;
  options.bytes_per_sync = size_t{1} << 20;
  options.write_buffer_manager = write_buffers_;
  // Without it one small write to a dataset keeps all logs since, up to 512 MiB for each dataset.
  options.max_total_wal_size = options_.wal_bytes;
  // What the logs hold stays in memory, and needs no file for each dataset before the store is open.
  options.avoid_flush_during_recovery = true;
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
  if (auto status = CheckCatalog(unknown); !status.ok()) return status;
  for (const std::string& name : unknown) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());

  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const auto opened = OpenFiles(descriptors, handles);
  if (!opened.ok()) return ToStatus(opened, "open " + path.string());
  for (size_t i = 0; i < handles.size(); ++i) {
    const std::string& name = descriptors[i].name;
    if (const auto live = settings.find(name); live != settings.end()) {
      families_[name] = std::make_shared<Family>(db_.get(), handles[i], live->second, idle_iterators_);
    } else {
      unknown_families_[name] = handles[i];
    }
  }
  for (const auto& [name, family] : families_) {
    if (auto status = OpenGate(*family); !status.ok()) return status;
  }
  if (read_only_) return absl::OkStatus();
  FlushOldLogs();
  return TakeLeftOut();
}

rocksdb::Status Engine::OpenFiles(std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                                  std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  rocksdb::DBOptions options = MakeDbOptions();
  const std::string path = dir_.rocksdb().string();
  rocksdb::DB* db = nullptr;
  auto status = rocksdb::DB::Open(options, path, families, &handles, &db);
  if (status.IsNoSpace()) {
    // Without a file for what the logs hold, and with what was kept for this. Nothing may take more of that
    // than it needs.
    dir_.reserve().Release();
    options.allow_fallocate = false;
    for (auto& family : families) {
      family.options.write_buffer_size = kUnflushedBytes;
      family.options.memtable_prefix_bloom_size_ratio = 0;  // of that size
    }
    status = rocksdb::DB::Open(options, path, families, &handles, &db);
  }
  if (status.IsNoSpace()) {
    read_only_ = true;
    status = rocksdb::DB::OpenForReadOnly(options, path, families, &handles, &db);
  }
  db_.reset(db);
  if (status.ok() && !read_only_) {
    // What a change of the catalog and an open write anew.
    dir_.reserve().Restore(SizeOf(dir_.catalog()) + SizeOf(CurrentManifest(dir_.rocksdb())));
  }
  return status;
}

absl::Status Engine::CheckCatalog(const std::set<std::string>& unknown) const {
  if (!options_.catalog_missing) return absl::OkStatus();
  std::vector<std::string> datasets;
  for (const std::string& name : unknown) {
    if (name != rocksdb::kDefaultColumnFamilyName && !DirtyLog::IsFamilyName(name)) datasets.push_back(name);
  }
  if (datasets.empty()) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("{} is missing, and there is data of {} datasets: {}; bring the file back from a backup. "
                  "Nothing was changed",
                  dir_.catalog().string(), datasets.size(), fmt::join(datasets, ", ")));
}

absl::Status Engine::TakeLeftOut() {
  const uint64_t left_out = LeftOut(dir_);
  if (left_out == 0) return absl::OkStatus();
  // Those that are no objects have no counters, and need no floor; it does no harm.
  for (const auto& [name, family] : families_) {
    const uint64_t incarnation = family->settings->incarnation;
    if (auto status = RocksObjectStore::RaiseFloor(*this, incarnation, left_out); !status.ok()) return status;
  }
  return ForgetLeftOut(dir_);
}

void Engine::FlushOldLogs() {
  const LogsOnDisk logs = Logs();
  if (logs.files <= kMaxOldLogs && logs.bytes <= kFlushedAtOnce) return;
  // On a disk that is nearly full the logs are as good a place as any.
  std::error_code error;
  if (std::filesystem::space(dir_.path(), error).available < 2 * logs.bytes || error) return;
  flush_at_close_ = logs.bytes > kFlushedAtOnce;
  FlushAll(/*wait=*/!flush_at_close_);
}

void Engine::FlushAll(bool wait) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles = {meta()};
  for (const auto& [name, family] : families_) handles.push_back(family->handle);
  for (const auto& [name, handle] : unknown_families_) {
    if (name != rocksdb::kDefaultColumnFamilyName) handles.push_back(handle);
  }
  rocksdb::FlushOptions options;
  options.wait = wait;
  options.allow_write_stall = true;
  // What fails here is tried again by RocksDB, or by the next open.
  db_->Flush(options, handles).PermitUncheckedError();
}

}  // namespace kvstore::rocks
