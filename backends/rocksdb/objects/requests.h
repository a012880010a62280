#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine/engine.h"
#include "base/mutex.h"

namespace kvstore::rocks {

/// Remembers which object each create with a request_id has made, so that a repeated create is idempotent. An
/// entry is kept in the default family, is written in one batch with the object, and is removed after one to
/// two days. Thread-safe.
///
///   requests/ be64(incarnation) be32(day) request_id -> be64(id)
class Requests {
 public:
  Requests(Engine& engine, uint64_t incarnation) : engine_(engine), incarnation_(incarnation) {}

  /// Returns the ID of the object that the request has made; nullopt if there is none. The caller holds a
  /// lock that excludes other creates with this request_id until it has written.
  absl::StatusOr<std::optional<uint64_t>> Find(std::string_view request_id);
  /// Adds the request to the batch that writes the object.
  absl::Status Add(std::string_view request_id, uint64_t id, rocksdb::WriteBatch& batch);

  /// Adds the removal of all requests of a dataset to `batch`.
  static absl::Status Drop(Engine& engine, uint64_t incarnation, rocksdb::WriteBatch& batch);

 private:
  /// Adds the removal of requests from before yesterday, once a day.
  absl::Status RemoveOld(uint32_t today, rocksdb::WriteBatch& batch);

  Engine& engine_;
  const uint64_t incarnation_;
  Mutex mutex_;
  uint32_t removed_on_ ABSL_GUARDED_BY(mutex_) = 0;  // the day on which RemoveOld has last removed some
};

}  // namespace kvstore::rocks
