#pragma once

#include <rocksdb/db.h>
#include <rocksdb/statistics.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/data_dir.h"
#include "backends/rocksdb/family.h"
#include "backends/rocksdb/row_locks.h"
#include "backends/rocksdb/timestamps.h"
#include "backends/rocksdb/trimmer.h"
#include "kvstore_api/dataset.h"

namespace kvstore::rocks {

struct EngineOptions {
  size_t cache_bytes = size_t{32} << 20;          ///< Blocks kept in memory, all datasets together.
  size_t write_buffer_bytes = size_t{256} << 20;  ///< Writes not yet in files, all datasets together.
  size_t wal_bytes = size_t{1} << 30;  ///< About this much of logs; beyond it what they hold is flushed.
  /// The catalog of this store is a file that is not there: data of any dataset is then DATA_LOSS.
  bool catalog_missing = false;
};

struct LogsOnDisk {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

/// What is kept of a Gate.
struct StoredGate {
  EndpointState state = EndpointState::kServing;
  bool capture = false;
  uint64_t epoch = 0;
  uint64_t ids = 0;
};

/// One RocksDB with a column family for each dataset, and what all datasets share: row locks, the clock, the
/// trimmer. Small state of our own (ceilings of the clock, counters of local IDs) is in the default family.
/// Thread-safe.
class Engine {
 public:
  /// Opens the database of `dir`, creating it if there is none, and holds the directory as long as it lives.
  ///
  /// known  the datasets that must be there; DATA_LOSS if one has no family. Families beyond those are left
  ///        alone.
  /// moving  datasets that may be there besides: of migrations whose other side is the truth.
  static absl::StatusOr<std::shared_ptr<Engine>> Open(DataDir dir, std::span<const DatasetSpec> known,
                                                      std::span<const DatasetSpec> moving,
                                                      const EngineOptions& options);
  ~Engine();

  /// OK if the dataset has its family already; one of an earlier dataset of the same name is removed first,
  /// with its data. FAILED_PRECONDITION if the name's family is an unknown one.
  absl::Status CreateFamily(const DatasetSpec& spec);
  /// OK if there is none.
  absl::Status DropFamily(const std::string& name);
  /// Null if there is none.
  std::shared_ptr<Family> FindFamily(const std::string& name) const;

  // ---- migrations ----

  /// How a dataset stands in a migration, kept in the default family as "migration/" be64(incarnation). One
  /// of which nothing is kept serves, and has never had a worker.
  absl::StatusOr<StoredGate> LoadGate(uint64_t incarnation);
  absl::Status StoreGate(uint64_t incarnation, const StoredGate& gate);
  absl::Status RemoveGate(uint64_t incarnation);
  /// Gives the family's gate its dirty log, made if there is none. Under the gate's mutex.
  absl::Status OpenDirty(Family& family);
  /// OK if there is none. Nobody may write to it any more.
  absl::Status DropDirty(Family& family);

  /// Writes `batch`; it survives what `sync` says (see Durability) when this returns OK. On a full disk
  /// RESOURCE_EXHAUSTED; later writes go on by themselves once there is space.
  ///
  /// makes_room  part of a drop: may use the reserve.
  absl::Status Write(rocksdb::WriteBatch& batch, bool sync, bool makes_room = false);
  /// OK unless writes fail, because the disk is full or there are no file descriptors; tries to go on then.
  absl::Status CheckWrites();

  /// What a restart would read.
  LogsOnDisk Logs() const;

  rocksdb::DB& db() { return *db_; }
  /// For keys of our own; each user of it has a prefix (see docs/key-format.md).
  rocksdb::ColumnFamilyHandle* meta() { return db_->DefaultColumnFamily(); }
  RowLocks& locks() { return locks_; }
  Timestamps& timestamps() { return *timestamps_; }
  Trimmer& trimmer() { return *trimmer_; }
  const rocksdb::Statistics& statistics() const { return *statistics_; }

 private:
  Engine(DataDir dir, const EngineOptions& options);

  rocksdb::DBOptions MakeDbOptions();
  rocksdb::ColumnFamilyOptions MakeFamilyOptions(const DatasetSpec& spec,
                                                 const std::shared_ptr<FamilySettings>& settings) const;
  absl::Status OpenDb(std::span<const DatasetSpec> known, std::span<const DatasetSpec> moving);
  /// Opens db_: on a full disk with the reserve; if that is gone too, to be read only.
  rocksdb::Status OpenFiles(std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                            std::vector<rocksdb::ColumnFamilyHandle*>& handles);
  /// DATA_LOSS if there are datasets although the catalog is missing.
  absl::Status CheckCatalog(const std::set<std::string>& unknown) const;
  /// RESOURCE_EXHAUSTED if the store was opened to be read only.
  absl::Status CheckWritable() const;
  /// After a repair: IDs that may have been given in what was left out are not given again.
  absl::Status TakeLeftOut();
  /// Lets go of the logs of earlier lives if there are many.
  void FlushOldLogs();
  void FlushAll(bool wait);
  /// Drops a family, with the reserve if there is no other space.
  rocksdb::Status DropHandle(rocksdb::ColumnFamilyHandle* handle);
  /// As it was left.
  absl::Status OpenGate(Family& family);
  absl::Status LoadTimestamps();
  /// Lets RocksDB go on after a background error, if it can.
  rocksdb::Status Resume();

  const DataDir dir_;
  const EngineOptions options_;
  bool read_only_ = false;       // set by OpenDb
  bool flush_at_close_ = false;  // the same: what it has begun
  const std::shared_ptr<rocksdb::Cache> cache_;
  const std::shared_ptr<rocksdb::WriteBufferManager> write_buffers_;
  const std::shared_ptr<Trimmer> trimmer_;
  const std::shared_ptr<IdleIterators> idle_iterators_;
  const std::shared_ptr<rocksdb::Statistics> statistics_;
  std::atomic<bool> stopped_{false};  // an error may have stopped writes: only a write can tell
  RowLocks locks_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<Timestamps> timestamps_;
  std::mutex resume_mutex_;
  mutable std::mutex families_mutex_;
  std::map<std::string, std::shared_ptr<Family>> families_;               // guarded by families_mutex_
  std::map<std::string, rocksdb::ColumnFamilyHandle*> unknown_families_;  // set by OpenDb; the same
};

}  // namespace kvstore::rocks
