#pragma once

#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/statistics.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/checkpoint.h"
#include "backend_api/write_log.h"
#include "backends/rocksdb/engine/answer_cache.h"
#include "backends/rocksdb/engine/checkpoint.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "backends/rocksdb/engine/family.h"
#include "backends/rocksdb/engine/row_locks.h"
#include "backends/rocksdb/engine/timestamps.h"
#include "backends/rocksdb/engine/trimmer.h"
#include "base/mutex.h"
#include "kvstore_api/dataset.h"

namespace kvstore::rocks {

/// How much memory and disk an engine may use, and what its caller knows of the catalog.
struct EngineOptions {
  size_t cache_bytes = size_t{32} << 20;  ///< Blocks and answers kept in memory, all datasets together.
  bool cache_answers = true;  ///< Whether answers are kept there, besides blocks (answer_cache.h).
  size_t write_buffer_bytes = size_t{256} << 20;  ///< Writes not yet in files, all datasets together.
  size_t wal_bytes = size_t{1} << 30;  ///< Write-ahead logs, about; beyond it, memtables are flushed.
  /// The changes of a dataset that are kept for those who follow it (change_log.h), about, on disk.
  uint64_t changes_bytes = uint64_t{4} << 30;
  uint64_t keep_logs_s = 0;  ///< Logs that are not needed any more are kept for so long, for ReadWrites.
  /// The store's catalog is a file that is missing. Data of any dataset is then DATA_LOSS, since nothing says
  /// what it is.
  bool catalog_missing = false;
  /// The catalog is not a file of the store's directory, and has datasets of other directories too.
  bool catalog_shared = false;
};

/// The write-ahead logs of a database.
struct LogsOnDisk {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

class Engine;

/// Hooks by which the layers above act on families, whose cells and objects the engine knows nothing of. All
/// must be set; the engine calls them for as long as it lives, and they must not throw.
struct FamilyHooks {
  /// Makes the compaction filters of a dataset of rows.
  std::function<std::shared_ptr<rocksdb::CompactionFilterFactory>(std::shared_ptr<FamilySettings> settings,
                                                                  std::shared_ptr<Trimmer> trimmer)>
      filters;
  /// Called with each family before anyone else can find it: restores its state in a migration.
  std::function<absl::Status(Engine& engine, Family& family)> opened;
  /// Removes surplus versions of a column, given as enc(row) enc(column). Called by the trimmer's thread.
  std::function<void(Engine& engine, const Family& family, const std::string& column)> trim;
  /// Trims the log of a dataset's changes, if there is one. Called by the trimmer's thread.
  std::function<void(const Family& family)> trim_changes;
  /// Called with each family while the engine opens, after a repair has left out `left_out` bytes of the
  /// logs: makes sure that IDs which may have been assigned there are not assigned again.
  std::function<absl::Status(Engine& engine, const Family& family, uint64_t left_out)> raise_ids;
};

/// One RocksDB database with a column family for each dataset, and what all datasets share: row locks, the
/// clock, the trimmer. Small state of our own (ceilings of the clock, counters of local IDs, states of
/// migrations) is in the default family. Thread-safe.
class Engine {
 public:
  /// Opens the database in `dir`, creating it if there is none. The engine keeps the directory locked as long
  /// as it lives.
  ///
  /// known   the datasets that must be there; DATA_LOSS if one has no family. Other families are left alone.
  /// moving  datasets that may be there as well: those whose migration has its other side here.
  static absl::StatusOr<std::shared_ptr<Engine>> Open(DataDir dir, std::span<const DatasetSpec> known,
                                                      std::span<const DatasetSpec> moving,
                                                      const EngineOptions& options, FamilyHooks hooks);
  ~Engine();

  /// Creates the family of a dataset. OK if it exists already; the family of an earlier dataset of the same
  /// name is dropped first, with its data. So is a family of this name that the catalog did not name when the
  /// engine was opened, as one that a create has left which was cut short; FAILED_PRECONDITION if it has
  /// data.
  absl::Status CreateFamily(const DatasetSpec& spec);
  /// Drops the family of a dataset with its data, after the writes of clients that are in flight; later ones
  /// are refused. OK if there is none. The caller excludes changes of the family's state (Gate::mutex).
  absl::Status DropFamily(const std::string& name);
  /// The family of a dataset; null if there is none.
  std::shared_ptr<Family> FindFamily(const std::string& name) const;
  /// Whether there is a family of that name that the catalog did not name when the engine was opened.
  bool HasUnknownFamily(const std::string& name) const;

  // ---- auxiliary families, such as dirty logs ----

  /// Opens the family of that name, and creates it if there is none. The caller gives the handle back by
  /// CloseAuxiliaryFamily, whether the family was dropped or not, before the engine ends.
  absl::StatusOr<rocksdb::ColumnFamilyHandle*> OpenAuxiliaryFamily(const std::string& name);
  /// Drops such a family with its data. OK if there is none.
  ///
  /// open  the family's handle if it is open, which its owner still has to give back; null if it is not open.
  absl::Status DropAuxiliaryFamily(const std::string& name, rocksdb::ColumnFamilyHandle* open);
  /// Takes back the handle of such a family, or of one of a dataset that nobody has: it then can be opened or
  /// dropped again if it was not dropped. Must be called without locks that a caller of the engine holds.
  void CloseAuxiliaryFamily(rocksdb::ColumnFamilyHandle* handle);

  /// Writes `batch`. When it returns OK, the write survives what `sync` promises (see Durability).
  /// RESOURCE_EXHAUSTED on a full disk; later writes succeed by themselves once there is space. Errors after
  /// which the batch may still be in the log are marked in doubt (outcome.h).
  ///
  /// In a PromptScope it returns a WouldWaitError instead of waiting for the device, for another write that
  /// waits for it, or for room in memory, and where RocksDB or the reserve must first be made ready for
  /// writes again.
  ///
  /// makes_room  the write is part of a drop, which may use the disk space of the reserve.
  absl::Status Write(rocksdb::WriteBatch& batch, bool sync, bool makes_room = false);
  /// Returns OK unless writes fail because the disk is full or the process is out of file descriptors. If
  /// they did, it tries whether they succeed again.
  absl::Status CheckWrites();

  /// Makes a checkpoint of the whole directory (Backend::MakeCheckpoint), without the catalog if that is
  /// shared.
  ///
  /// FAILED_PRECONDITION if the catalog should be in the directory and is not; UNAVAILABLE if datasets are
  /// created, altered or dropped all the time, so that no moment is found at which the catalog describes the
  /// database.
  absl::StatusOr<std::unique_ptr<Checkpoint>> MakeCheckpoint();

  /// Reads the log (WriteLog::Read).
  absl::StatusOr<std::vector<LoggedWrite>> ReadWrites(uint64_t after, size_t max_bytes);
  /// Returns all families and the files that say what is in them (WriteLog::Schema).
  absl::StatusOr<LogSchema> Schema() const;

  /// The logs that a restart would have to replay.
  LogsOnDisk Logs() const;

  rocksdb::DB& db() { return *db_; }
  const EngineOptions& options() const { return options_; }
  /// Whether the disk was full when the engine was opened, so that nothing can be written.
  bool read_only() const { return read_only_; }
  /// The default family, for small state of our own; each kind of state has a key prefix (see
  /// docs/key-format.md).
  rocksdb::ColumnFamilyHandle* meta() { return db_->DefaultColumnFamily(); }
  RowLocks& locks() { return locks_; }
  Timestamps& timestamps() { return *timestamps_; }
  Trimmer& trimmer() { return *trimmer_; }
  /// The bytes of the blocks and answers that are in memory.
  size_t CachedBytes() const { return cache_->GetUsage(); }
  /// Null if answers are not kept.
  AnswerCache* answers() { return answers_.get(); }
  const rocksdb::Statistics& statistics() const { return *statistics_; }

 private:
  Engine(DataDir dir, const EngineOptions& options, FamilyHooks hooks);

  rocksdb::DBOptions MakeDbOptions();
  rocksdb::ColumnFamilyOptions MakeFamilyOptions(const DatasetSpec& spec,
                                                 const std::shared_ptr<FamilySettings>& settings) const;
  absl::Status OpenDb(std::span<const DatasetSpec> known, std::span<const DatasetSpec> moving);
  /// Opens db_. If the disk is full it releases the reserve and tries again; if there is still no space, it
  /// opens the database to be read only.
  rocksdb::Status OpenFiles(std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                            std::vector<rocksdb::ColumnFamilyHandle*>& handles);
  /// DATA_LOSS if the catalog is missing and one of these families belongs to a dataset.
  absl::Status CheckCatalog(const std::set<std::string>& unknown) const;
  /// RESOURCE_EXHAUSTED if the database was opened to be read only, since the disk was full.
  absl::Status CheckWritable() const;
  /// After a repair that left out a part of the logs, calls FamilyHooks::raise_ids for each family.
  absl::Status RaiseIdsAboveLeftOut();
  /// Flushes what the logs of earlier runs hold, if they are many or large, so that they can be deleted.
  void FlushOldLogs();
  /// Flushes all families; returns when that is done, or has begun, as `wait` says.
  void FlushAll(bool wait);
  /// All families of datasets, as they are now.
  std::vector<std::shared_ptr<Family>> AllFamilies() const;
  /// Returns what a checkpoint and a schema take from the directory.
  CatalogFile CatalogFileFor(bool has_datasets) const;
  absl::StatusOr<rocksdb::ColumnFamilyHandle*> CreateHandle(const rocksdb::ColumnFamilyOptions& options,
                                                            const std::string& name);
  /// Whether a family of unknown_families_ has data.
  absl::StatusOr<bool> HasData(const std::string& unknown) const;
  /// Drops a family, and releases the reserve if the disk is too full to record the drop.
  rocksdb::Status DropHandle(rocksdb::ColumnFamilyHandle* handle);
  /// Drops the family of that name from unknown_families_, and returns whether there was one. Never drops the
  /// default family.
  absl::StatusOr<bool> DropUnknown(const std::string& name);
  /// Reads the stored ceilings of the clock, and makes timestamps_.
  absl::Status LoadTimestamps();
  /// Lets RocksDB accept writes again after a background error, if it can.
  rocksdb::Status Resume();

  const DataDir dir_;
  const EngineOptions options_;
  const FamilyHooks hooks_;
  bool read_only_ = false;       // set while the engine is opened
  bool flush_at_close_ = false;  // the same; a flush was begun that the close has to finish
  const std::shared_ptr<rocksdb::Cache> cache_;
  const std::shared_ptr<rocksdb::WriteBufferManager> write_buffers_;
  const std::shared_ptr<Trimmer> trimmer_;
  const std::shared_ptr<IdleIterators> idle_iterators_;
  const std::shared_ptr<rocksdb::Statistics> statistics_;
  const std::unique_ptr<AnswerCache> answers_;  // null: not kept
  std::atomic<bool> stopped_{false};            // an error may have stopped writes; only a write can tell
  std::atomic<int> syncing_{0};                 // writes in flight that wait for the device
  RowLocks locks_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<Timestamps> timestamps_;
  std::atomic<uint64_t> checkpoints_{0};  // that were begun, which gives each a folder of its own
  Mutex resume_mutex_;                    // one thread at a time resumes the database
  mutable Mutex families_mutex_;
  std::map<std::string, std::shared_ptr<Family>> families_ ABSL_GUARDED_BY(families_mutex_);
  /// The names of all families, by their IDs.
  std::map<uint32_t, std::string> family_names_ ABSL_GUARDED_BY(families_mutex_);
  /// The auxiliary families that are open, and were not dropped.
  std::set<rocksdb::ColumnFamilyHandle*> auxiliary_ ABSL_GUARDED_BY(families_mutex_);
  /// Families that no dataset of the catalog has, and the default one.
  std::map<std::string, rocksdb::ColumnFamilyHandle*> unknown_families_ ABSL_GUARDED_BY(families_mutex_);
};

}  // namespace kvstore::rocks
