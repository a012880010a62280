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
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/change_capture.h"

namespace kvstore::rocks {

/// The units that writes have touched while a dataset migrates, in a column family of the log's own:
///
///   be64(id) -> be64(time in ms) unit key
///
/// An entry is added in the same batch as the data that it is about. Thread-safe.
class DirtyLog {
 public:
  /// The name of the log's column family: "events$dirty". No dataset can have such a name.
  static std::string FamilyName(std::string_view dataset);

  /// SkipRemoved does nothing until this many entries were removed: reads pass over so many tombstones.
  static constexpr uint64_t kManyRemoved = 4096;

  /// Takes ownership of `handle`. IDs begin at `first_id`, which must be higher than any ID given before.
  ///
  /// close  gives the handle back when this ends (Engine::CloseAuxiliaryFamily).
  DirtyLog(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* handle, uint64_t first_id,
           std::function<void(rocksdb::ColumnFamilyHandle*)> close)
      : db_(db), handle_(handle), close_(std::move(close)), next_id_(first_id) {}
  ~DirtyLog() { close_(handle_); }
  DirtyLog(const DirtyLog&) = delete;
  DirtyLog& operator=(const DirtyLog&) = delete;

  /// Adds an entry for `unit` to the batch of the write that touches it.
  absl::Status Add(rocksdb::WriteBatch& batch, std::string_view unit);

  /// Returns up to `limit` entries, those with the lowest IDs. DATA_LOSS if one does not decode.
  absl::StatusOr<std::vector<DirtyEntry>> Read(size_t limit) const;
  /// Adds the removal of `entries` to `batch`.
  absl::Status Remove(std::span<const DirtyEntry> entries, rocksdb::WriteBatch& batch);
  /// After many removals, finds the lowest ID that is left, so that later reads do not pass over the
  /// tombstones of removed entries. An ID is taken before its entry is committed, so this first waits for the
  /// writes in flight.
  ///
  /// wait  returns when all writes that were in flight when it was called have ended.
  absl::Status SkipRemoved(const std::function<void()>& wait);
  /// Returns how many entries there are, counted up to 100,000, and the age of the oldest.
  absl::StatusOr<DirtyLag> Lag() const;

  rocksdb::ColumnFamilyHandle* handle() const { return handle_; }

 private:
  /// An iterator at the first entry.
  std::unique_ptr<rocksdb::Iterator> Begin() const;

  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const handle_;
  const std::function<void(rocksdb::ColumnFamilyHandle*)> close_;
  std::atomic<uint64_t> next_id_;
  std::atomic<uint64_t> first_{0};    // no entry has a lower ID, now or later
  std::atomic<uint64_t> removed_{0};  // since first_ was found
};

}  // namespace kvstore::rocks
