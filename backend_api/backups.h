#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// Makes backups of a store: a server does so for `kv backup create`. Thread-safe.
class BackupMaker {
 public:
  /// A backup that was made.
  struct Made {
    std::string id;
    std::string url;  ///< The URL of the store of backups in which it is.
    uint64_t began_ms = 0;
    uint64_t finished_ms = 0;
    uint64_t bytes = 0;  ///< The size of all its files together.
    uint64_t files = 0;
    uint64_t units = 0;  ///< The units of the dataset; 0 in a backup of a whole store.
    uint64_t sent_bytes = 0;
    uint64_t sent_objects = 0;
  };

  virtual ~BackupMaker() = default;

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

/// The operators' interface to the backups of a store in a server. Arguments and errors are those of
/// CreateBackup. Thread-safe.
class Backups : public BackupMaker {
 public:
  /// The newest backups.
  struct Listed {
    std::string url;            ///< The URL of the store of backups that was listed.
    std::vector<Made> backups;  ///< Newest first.
    /// The IDs of those among them whose manifests cannot be read.
    std::vector<std::string> unreadable;
    bool more = false;  ///< There are older ones.
  };
  /// The result of a verification.
  struct Verified {
    std::string id;
    uint64_t objects = 0;               ///< Objects that were looked at.
    uint64_t read_bytes = 0;            ///< Bytes that were read and compared with their checksums.
    std::vector<std::string> problems;  ///< A line each; empty: the backup is whole, as far as was looked.
  };

  /// Lists the newest backups, at most so many (at least 1). One that is being made is not listed.
  /// Ends with an error of its CallScope between two of them.
  [[nodiscard]] virtual absl::StatusOr<Listed> ListBackups(std::string_view dataset, size_t limit) = 0;
  /// Looks whether a backup is whole: all objects are there with their sizes, and what says what is in the
  /// store decodes.
  ///
  /// id    as ListBackups has it; empty: the newest. NOT_FOUND if there is none.
  /// deep  also reads all objects, and compares them with their checksums.
  ///
  /// FAILED_PRECONDITION while another one is verified so: it reads as fast as it can.
  [[nodiscard]] virtual absl::StatusOr<Verified> VerifyBackup(std::string_view dataset, std::string_view id,
                                                              bool deep, const Progress& progress) = 0;
};

}  // namespace kvstore
