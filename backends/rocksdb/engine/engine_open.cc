#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "backends/rocksdb/engine/damage.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/engine/file_system.h"
#include "backends/rocksdb/engine/info_log.h"
#include "backends/rocksdb/engine/log_repair.h"
#include "backends/rocksdb/engine/open_error.h"
#include "backends/rocksdb/engine/seal.h"
#include "backends/rocksdb/engine/status.h"
#include "base/advice.h"
#include "base/fail_point.h"
#include "base/files.h"

/// Opening an engine: the options of RocksDB, and the handling of what is found on disk.
namespace kvstore::rocks {
namespace {

constexpr uint64_t kDaySeconds = 86'400;

/// Every run of a store leaves a log behind until the memtables that it backs are flushed, and each open
/// replays those logs again. With more files or bytes than these, an open flushes them: before it returns if
/// they hold little, else in the background, and the close waits for the end.
constexpr size_t kMaxOldLogs = 8;
constexpr uint64_t kFlushedAtOnce = uint64_t{16} << 20;
/// With more families than these, the flush is in the background too, because each one gets a file.
constexpr size_t kFamiliesFlushedAtOnce = 64;
/// RocksDB starts threads for each family that it opens, whether the family has files or not. An open starts
/// about so many in all, and RocksDB's default for each family at most.
constexpr size_t kThreadsOfOpen = 128;
constexpr size_t kThreadsOfFamily = 16;
/// A write buffer larger than all logs together: with it, replaying them flushes nothing.
constexpr size_t kUnflushedBytes = size_t{8} << 30;

/// The prefix that goes into bloom filters: enc(row). Every key of a cell begins with one.
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

/// Makes a block cache whose parts (shards) are no smaller than the largest index block of a file, which
/// would otherwise not fit and be read again and again.
std::shared_ptr<rocksdb::Cache> NewCache(size_t bytes) {
  constexpr size_t kMinPartBytes = size_t{8} << 20;
  constexpr int kMaxPartBits = 6;
  int part_bits = 0;
  while (part_bits < kMaxPartBits && bytes >> (part_bits + 1) >= kMinPartBytes) ++part_bits;
  return rocksdb::NewLRUCache(bytes, part_bits);
}

/// Turns off RocksDB's own recovery from a full disk, which waits in steps of five seconds until 64 MiB are
/// free, and refuses to be resumed meanwhile: the next write resumes it (see Engine::Write). RocksDB still
/// recovers by itself where only compactions have failed, since no write would fail then.
class ResumedByWrites : public rocksdb::EventListener {
 public:
  /// stopped  is set when writes may fail from now on; must outlive the listener.
  explicit ResumedByWrites(std::atomic<bool>& stopped) : stopped_(stopped) {}

  // The severity of the error is not known yet at this point.
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

/// The size of a file in bytes; 0 if there is none.
uint64_t SizeOf(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error ? 0 : size;
}

/// Returns by how many threads RocksDB shall open the files of each family.
int ThreadsToOpen(const std::filesystem::path& database, size_t families) {
  size_t tables = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(database, error)) {
    if (file.path().extension() == ".sst") ++tables;
  }
  // The thread that opens the database is the first one of each family.
  const size_t threads = 1 + kThreadsOfOpen / std::max<size_t>(families, 1);
  return static_cast<int>(std::clamp<size_t>(std::min(threads, tables), 1, kThreadsOfFamily));
}

}  // namespace

Engine::Engine(DataDir dir, const EngineOptions& options, FamilyHooks hooks)
    : dir_(std::move(dir)),
      options_(options),
      hooks_(std::move(hooks)),
      cache_(NewCache(options.cache_bytes)),
      write_buffers_(std::make_shared<rocksdb::WriteBufferManager>(options.write_buffer_bytes)),
      trimmer_(std::make_shared<Trimmer>()),
      idle_iterators_(std::make_shared<IdleIterators>()),
      statistics_(rocksdb::CreateDBStatistics()),
      answers_(options.cache_answers && options.cache_bytes > 0
                   ? std::make_unique<AnswerCache>(cache_, statistics_)
                   : nullptr) {
  // Counters cost nothing measurable; timers and histograms would.
  statistics_->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
}

rocksdb::DBOptions Engine::MakeDbOptions() {
  rocksdb::DBOptions options;
  options.env = StoreEnv();
  // StoreEnv lets no OPTIONS file be created, and from version 8 on, RocksDB would not open without one.
  options.fail_if_options_file_error = false;
  // RocksDB must not wait for free file descriptors by itself either (see ResumedByWrites).
  options.max_bgerror_resume_count = 0;
  options.create_if_missing = true;
  options.listeners = {std::make_shared<ResumedByWrites>(stopped_), idle_iterators_};
  options.info_log = OpenInfoLog(dir_.rocksdb() / "LOG");
  options.max_background_jobs = 4;
  options.statistics = statistics_;
  options.bytes_per_sync = size_t{1} << 20;
  options.write_buffer_manager = write_buffers_;
  // Without this limit one small write to a dataset keeps all later logs, up to 512 MiB for each dataset.
  options.max_total_wal_size = options_.wal_bytes;
  options.WAL_ttl_seconds = options_.keep_logs_s;
  // Replayed logs stay in memory: a flush would need a file for each dataset before the store is open.
  options.avoid_flush_during_recovery = true;
  // A crash leaves a torn tail of the log, which is dropped. Damage before the tail is an error, and is not
  // skipped silently.
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
  // The memory that an open dataset takes before its first write is kept small, so that hundreds of datasets
  // leave room for writes: a block, and a bloom filter of 64 KiB, good for some 50,000 rows between two
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
      options.compaction_filter_factory = hooks_.filters(settings, trimmer_);
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
                                                     const EngineOptions& options, FamilyHooks hooks) {
  std::shared_ptr<Engine> engine(new Engine(std::move(dir), options, std::move(hooks)));
  if (auto status = engine->OpenDb(known, moving); !status.ok()) return status;
  if (auto status = engine->LoadTimestamps(); !status.ok()) return status;
  Engine* const self = engine.get();
  engine->trimmer_->Start([self](const std::shared_ptr<FamilySettings>& settings, const std::string& column) {
    const auto family = self->FindFamily(settings->name);
    // A dataset that was dropped has nothing to trim, and another one may have its name by now.
    if (!family || family->settings != settings) return;
    if (column == Trimmer::kChangeLog) {
      self->hooks_.trim_changes(*family);
    } else {
      self->hooks_.trim(*self, *family, column);
    }
  });
  return engine;
}

absl::Status Engine::OpenDb(std::span<const DatasetSpec> known, std::span<const DatasetSpec> moving) {
  Reached("engine.open");
  const std::filesystem::path path = dir_.rocksdb();
  std::error_code error;
  // A process that was killed during a backup leaves these; they may hold the space of tables that are gone.
  std::filesystem::remove_all(dir_.checkpoints(), error);
  const bool exists = std::filesystem::exists(path / "CURRENT", error);
  if (error) return FileError(path, "look into", error.value());
  if (!exists && !known.empty()) {
    return MissingDataError(fmt::format("{}: there are {} datasets in the catalog, and no database here",
                                        path.string(), known.size()),
                            options_.catalog_shared);
  }
  if (!std::filesystem::create_directories(path, error) && error)
    return FileError(path, "create", error.value());
  const rocksdb::DBOptions db_options = MakeDbOptions();
  std::vector<std::string> stored;
  if (exists) {
    if (auto status = CheckSeal(dir_.seal(), path); !status.ok()) return status;
    const auto listed = rocksdb::DB::ListColumnFamilies(db_options, path.string(), &stored);
    if (!listed.ok()) return ExplainOpenError(dir_, ToStatus(listed, "read " + path.string()));
  }
  std::map<std::string, std::shared_ptr<FamilySettings>> settings;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  std::set<std::string> unknown(stored.begin(), stored.end());
  for (const DatasetSpec& spec : known) {
    if (unknown.erase(spec.name) == 0) {
      return MissingDataError(fmt::format("{}: dataset '{}' is in the catalog, and its data is not here",
                                          path.string(), spec.name),
                              options_.catalog_shared);
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
  if (!opened.ok()) return ExplainOpenError(dir_, ToStatus(opened, "open " + path.string()));
  {
    const MutexLock lock(families_mutex_);
    for (size_t i = 0; i < handles.size(); ++i) {
      const std::string& name = descriptors[i].name;
      family_names_[handles[i]->GetID()] = name;
      if (const auto live = settings.find(name); live != settings.end()) {
        families_[name] = std::make_shared<Family>(db_.get(), handles[i], live->second, idle_iterators_);
      } else {
        unknown_families_[name] = handles[i];
      }
    }
  }
  for (const std::shared_ptr<Family>& family : AllFamilies()) {
    if (auto status = hooks_.opened(*this, *family); !status.ok()) return status;
  }
  if (read_only_) return absl::OkStatus();
  FlushOldLogs();
  return RaiseIdsAboveLeftOut();
}

rocksdb::Status Engine::OpenFiles(std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                                  std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  rocksdb::DBOptions options = MakeDbOptions();
  const std::string path = dir_.rocksdb().string();
  options.max_file_opening_threads = ThreadsToOpen(dir_.rocksdb(), families.size());
  rocksdb::DB* db = nullptr;
  auto status = rocksdb::DB::Open(options, path, families, &handles, &db);
  if (status.IsNoSpace()) {
    // Try again with the disk space of the reserve, and without writing tables for what the logs hold.
    // Nothing may take more of that space than it needs.
    dir_.reserve().Release();
    options.allow_fallocate = false;
    for (auto& family : families) {
      family.options.write_buffer_size = kUnflushedBytes;
      family.options.memtable_prefix_bloom_size_ratio = 0;  // a share of write_buffer_size
    }
    status = rocksdb::DB::Open(options, path, families, &handles, &db);
  }
  if (status.IsNoSpace()) {
    read_only_ = true;
    status = rocksdb::DB::OpenForReadOnly(options, path, families, &handles, &db);
  }
  db_.reset(db);
  if (status.ok() && !read_only_) {
    // Both files are written anew by an open or by a change of the catalog, so they say how much space is
    // needed.
    dir_.reserve().Restore(SizeOf(dir_.catalog()) + SizeOf(CurrentManifest(dir_.rocksdb())));
  }
  return status;
}

absl::Status Engine::CheckCatalog(const std::set<std::string>& unknown) const {
  if (!options_.catalog_missing) return absl::OkStatus();
  std::vector<std::string> datasets;
  for (const std::string& name : unknown) {
    // An auxiliary family, such as a dirty log, has a name that no dataset can have.
    if (name != rocksdb::kDefaultColumnFamilyName && name.find('$') == std::string::npos)
      datasets.push_back(name);
  }
  if (datasets.empty()) return absl::OkStatus();
  return Advise(
      absl::DataLossError(
          fmt::format("{} is missing, and there is data of {} datasets: {}. Nothing was changed",
                      dir_.catalog().string(), datasets.size(), fmt::join(datasets, ", "))),
      fmt::format("bring the file back: kv backup restore --from URL --to NEW makes a store elsewhere, of "
                  "a backup that has these datasets; then cp NEW/catalog.json {}",
                  dir_.catalog().string()));
}

absl::Status Engine::RaiseIdsAboveLeftOut() {
  const uint64_t left_out = LeftOut(dir_);
  if (left_out == 0) return absl::OkStatus();
  for (const std::shared_ptr<Family>& family : AllFamilies()) {
    if (auto status = hooks_.raise_ids(*this, *family, left_out); !status.ok()) return status;
  }
  return ClearLeftOut(dir_);
}

void Engine::FlushOldLogs() {
  const LogsOnDisk logs = Logs();
  if (logs.files <= kMaxOldLogs && logs.bytes <= kFlushedAtOnce) return;
  // On a disk that is nearly full, the logs are as good a place as tables.
  std::error_code error;
  if (std::filesystem::space(dir_.path(), error).available < 2 * logs.bytes || error) return;
  flush_at_close_ = logs.bytes > kFlushedAtOnce || AllFamilies().size() > kFamiliesFlushedAtOnce;
  FlushAll(/*wait=*/!flush_at_close_);
}

void Engine::FlushAll(bool wait) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles = {meta()};
  {
    // Only opening and closing call this, when nobody drops a family, so the handles stay valid without the
    // lock.
    const MutexLock lock(families_mutex_);
    for (const auto& [name, family] : families_) handles.push_back(family->handle);
    handles.insert(handles.end(), auxiliary_.begin(), auxiliary_.end());
    for (const auto& [name, handle] : unknown_families_) {
      if (name != rocksdb::kDefaultColumnFamilyName) handles.push_back(handle);
    }
  }
  rocksdb::FlushOptions options;
  options.wait = wait;
  options.allow_write_stall = true;
  // RocksDB, or the next open, tries again what fails here.
  db_->Flush(options, handles).PermitUncheckedError();
}

}  // namespace kvstore::rocks
