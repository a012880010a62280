#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

/// The log of an embedded engine, which has every write in order: what a store of backups is sent between two
/// backups, and what a restore carries out again.
namespace kvstore {

/// A write of the log. Its changes have numbers, one after the other, which are never used again.
struct LoggedWrite {
  uint64_t number = 0;   ///< The number of its first change.
  uint32_t changes = 0;  ///< How many it has; at least one.
  std::string bytes;     ///< The write in a form that only the engine understands.
  uint64_t last() const { return number + changes - 1; }
  friend bool operator==(const LoggedWrite&, const LoggedWrite&) = default;
};

/// Says what the writes of a log are to: a change names its family of the engine by ID.
struct LogSchema {
  std::map<uint32_t, std::string> families;  ///< All families of the engine, by their IDs.
  /// The files that say what the data is, such as the catalog, by their paths in the store's folder.
  std::map<std::string, std::string> files;
  friend bool operator==(const LogSchema&, const LogSchema&) = default;
};

/// Reads the log while the store serves. Thread-safe.
class WriteLog {
 public:
  virtual ~WriteLog() = default;

  /// The number of the last change that was acknowledged, or may have been.
  virtual uint64_t Last() const = 0;
  /// Returns the writes after the change of this number, in order, until they have about `max_bytes`; none
  /// if there are none that can be read yet. OUT_OF_RANGE if the log does not have the next one any more.
  [[nodiscard]] virtual absl::StatusOr<std::vector<LoggedWrite>> Read(uint64_t after, size_t max_bytes) = 0;
  /// Returns the schema of now. A write that was read before may be to a family that it does not have: that
  /// was dropped.
  [[nodiscard]] virtual absl::StatusOr<LogSchema> Schema() = 0;
};

/// Carries out writes of a log again, in a store that was restored as it was before them, and that nobody has
/// opened yet. Externally synchronised.
class WriteReplay {
 public:
  virtual ~WriteReplay() = default;

  /// The number of the last change that the store has.
  virtual uint64_t Last() const = 0;
  /// Makes the store's families those of a schema: drops what it does not have, and creates the others.
  [[nodiscard]] virtual absl::Status Adopt(const LogSchema& schema) = 0;
  /// Carries out writes, of which the first one is the next after Last. Changes to families that the store
  /// does not have are left out.
  [[nodiscard]] virtual absl::Status Apply(std::span<const LoggedWrite> writes) = 0;
  /// Makes all that was carried out durable. The store may be opened when this object is gone.
  [[nodiscard]] virtual absl::Status Finish() = 0;
};

}  // namespace kvstore
