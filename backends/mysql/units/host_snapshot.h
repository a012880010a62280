#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "backends/mysql/driver/pool.h"
#include "backends/mysql/units/fleet_units.h"
#include "base/mutex.h"
#include "kvstore_api/dataset.h"

namespace kvstore::mysql {

/// The part of a snapshot that one host holds: a connection with an open transaction, which sees a dataset's
/// tables in all shards of the host at one moment. Thread-safe; reads wait for each other.
///
/// A transaction keeps metadata locks on the tables that it has read. A drop or a migration of the dataset
/// would wait for them until the snapshot's end, and clients' calls behind it. So each read gives its locks
/// back (ROLLBACK TO SAVEPOINT). A table may therefore become another one between two reads; each read checks
/// that it is still the same, because MyRocks would find a new table empty, without an error.
class HostSnapshot {
 public:
  /// pool  must outlive this.
  HostSnapshot(Pool& pool, const DatasetSpec& spec) : pool_(pool), spec_(spec), hold_(pool) {}
  ~HostSnapshot();
  HostSnapshot(const HostSnapshot&) = delete;
  HostSnapshot& operator=(const HostSnapshot&) = delete;

  /// Acquires a connection, and notes which tables the shards have. Done first on all hosts, so that their
  /// snapshots then begin soon after each other. FAILED_PRECONDITION if a shard has no table of the dataset;
  /// `missing` is then set to the shard.
  ///
  /// max_idle  The server ends the snapshot when it was not read for this time.
  absl::Status Prepare(std::span<const uint32_t> shards, std::chrono::seconds max_idle,
                       std::optional<uint32_t>& missing);
  /// Takes the snapshot. To be called once, after Prepare.
  absl::Status Begin();

  /// Runs `work` on a table of the host, in the snapshot. ABORTED if the snapshot is lost.
  absl::Status Read(const Table& table, const ReadTable& work);
  /// Releases the snapshot: from now on reads fail with SnapshotExpiredError(why).
  void Expire(std::string_view why);

  const Host& host() const { return pool_.host(); }

 private:
  absl::Status PrepareOnce(std::span<const uint32_t> shards, std::chrono::seconds max_idle,
                           std::optional<uint32_t>& missing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadOnce(const Table& table, const ReadTable& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Returns when the dataset's table on a shard was made, as text; nullopt if there is none.
  std::optional<std::string> MadeAt(uint32_t shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Gives the metadata locks of the last read back. Fails if the transaction is not open any more, so that
  /// no read outside of the snapshot goes unnoticed.
  void ReleaseTables() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Closes the connection, and with it the transaction. Returns the error of all later reads.
  absl::Status Lose(std::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Pool& pool_;
  const DatasetSpec spec_;
  const Hold hold_;
  Mutex mutex_;
  std::optional<Lease> lease_ ABSL_GUARDED_BY(mutex_);                // none before Prepare, or if it is lost
  std::unique_ptr<Transaction> transaction_ ABSL_GUARDED_BY(mutex_);  // on lease_
  std::map<uint32_t, std::string> made_ ABSL_GUARDED_BY(mutex_);      // MadeAt of each shard
  absl::Status lost_ ABSL_GUARDED_BY(mutex_);                         // why lease_ is lost
};

}  // namespace kvstore::mysql
