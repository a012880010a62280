#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/migration_endpoint.h"

namespace kvstore::rocks {

/// What writes touched while a dataset migrates, in a column family of its own:
///
///   be64(id) -> be64(time in ms) unit key
///
/// Entries are added in the batch that writes the data. Thread-safe.
class DirtyLog {
 public:
  /// "events$dirty"; no dataset can have this name.
  static std::string FamilyName(std::string_view dataset);
  static bool IsFamilyName(std::string_view name) { return name.ends_with("$dirty"); }

  /// Removed entries that reads may have to pass over.
  static constexpr uint64_t kManyRemoved = 4096;

  /// Takes over the handle. IDs begin at `first_id`: higher than any that was given before.
  DirtyLog(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle, uint64_t first_id)
      : db_(db), handle_(handle), next_id_(first_id) {}
  ~DirtyLog() { db_->DestroyColumnFamilyHandle(handle_); }
  DirtyLog(const DirtyLog&) = delete;
  DirtyLog& operator=(const DirtyLog&) = delete;

  /// Adds an entry to the batch of the write.
  absl::Status Add(rocksdb::WriteBatch& batch, std::string_view unit);

  /// The first `limit` entries.
  absl::StatusOr<std::vector<DirtyEntry>> Read(size_t limit) const;
  /// Adds their removal to a batch.
  absl::Status Remove(std::span<const DirtyEntry> entries, rocksdb::WriteBatch& batch);
  /// After many removals, so that reads do not pass over what was removed: `wait` returns when all writes
  /// have ended that were under way when it was called. IDs that were given before then have come, or never
  /// will.
  absl::Status Settle(const std::function<void()>& wait);
  /// Entries are counted up to a bound, beyond which they are as many as that.
  absl::StatusOr<DirtyLag> Lag() const;

  rocksdb::ColumnFamilyHandle* handle() const { return handle_; }

 private:
  /// At the first entry.
  std::unique_ptr<rocksdb::Iterator> Begin() const;

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const handle_;
  std::atomic<uint64_t> next_id_;
  std::atomic<uint64_t> first_{0};    // no entry has a lower ID, now or later
  std::atomic<uint64_t> removed_{0};  // since first_ was found
};

}  // namespace kvstore::rocks
