#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine.h"

namespace kvstore::rocks {

/// The objects that creates with a request_id have made, so that one that is repeated makes no other: kept in
/// the default family, written in one batch with the object, forgotten after one to two days. Thread-safe.
///
///   requests/ be64(incarnation) be32(day) request_id -> be64(id)
class Requests {
 public:
  Requests(Engine& engine, uint64_t incarnation) : engine_(engine), incarnation_(incarnation) {}

  /// The object that was made for it; none if there is none. The caller keeps other creates with the same
  /// request_id out until it has written.
  absl::StatusOr<std::optional<uint64_t>> Find(std::string_view request_id);
  /// Adds to the batch that writes the object.
  absl::Status Add(std::string_view request_id, uint64_t id, rocksdb::WriteBatch& batch);

  /// Adds to a batch that all of a dataset's are removed.
  static absl::Status Drop(Engine& engine, uint64_t incarnation, rocksdb::WriteBatch& batch);

 private:
  /// Removes those of the days before yesterday, once a day.
  absl::Status Forget(uint32_t today, rocksdb::WriteBatch& batch);

  Engine& engine_;
  const uint64_t incarnation_;
  std::mutex mutex_;
  uint32_t forgotten_ = 0;  // the day on which that was done; guarded by mutex_
};

}  // namespace kvstore::rocks
