#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// The operators' interface to the backups of a store: `kv backup create` through a server. Thread-safe.
class Backups {
 public:
  /// A backup that was made.
  struct Made {
    std::string id;
    std::string url;  ///< Of the store of backups in which it is.
    uint64_t began_ms = 0;
    uint64_t finished_ms = 0;
    uint64_t bytes = 0;  ///< Of all files.
    uint64_t files = 0;
    uint64_t units = 0;  ///< Of a dataset; 0 for a whole store.
    uint64_t sent_bytes = 0;
    uint64_t sent_objects = 0;
  };

  virtual ~Backups() = default;

  /// Makes a backup now, at the place that the configuration names.
  ///
  /// dataset   Empty: of the whole embedded store.
  /// progress  told the bytes that are done, and of all. Called by one thread at a time.
  ///
  /// FAILED_PRECONDITION while one of the same is being made, for another call or because it was due;
  /// UNIMPLEMENTED if no place is configured.
  [[nodiscard]] virtual absl::StatusOr<Made> CreateBackup(std::string_view dataset,
                                                          const Progress& progress) = 0;
};

}  // namespace kvstore
