#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvstore {

/// The kind of data in a dataset. Values are stored: never renumber.
enum class Shape : uint8_t { kRows = 1, kObjects = 2, kMappings = 3 };

/// The failures that an acknowledged write survives. Values are stored: never renumber.
enum class Durability : uint8_t {
  kProcess = 1,  ///< The death of this process (kill -9), not of the machine.
  kMachine = 2,  ///< Power loss: the write is on stable storage before the answer.
};

/// How a dataset's files are compressed. Values are stored: never renumber.
enum class Compression : uint8_t { kNone = 1, kLz4 = 2, kZstd = 3 };

/// A dataset as the catalog describes it: its name, shape, backend and settings.
struct DatasetSpec {
  std::string name;  ///< 1..48 letters, digits, '_', '-' and '.', starting with a letter, a digit or '_'.
  Shape shape = Shape::kRows;
  std::string backend;  ///< The name of a configured backend; empty at creation: the default one.
  /// Shape objects: the type number in the IDs, 1..1023, unique in the store; 0 at creation: the lowest free
  /// one. Other shapes: 0.
  uint32_t type = 0;
  uint32_t max_versions = 1;  ///< Rows: visible cells a column; 0 = unlimited. Other shapes: 1.
  uint64_t ttl_ms = 0;  ///< Rows: a cell expires when now > timestamp + ttl_ms; 0 = never. Other shapes: 0.
  Durability durability = Durability::kProcess;
  /// How long (ms) the changes of the dataset are kept for those who follow it (KVStore::ReadChanges); 0:
  /// they are not recorded. Only on backends that keep changes: embedded ones, and those on MariaDB servers,
  /// where any other value than 0 lets the dataset be followed for as long as the binary logs are kept.
  uint64_t keep_changes_ms = 0;
  Compression compression = Compression::kLz4;
  uint64_t blob_threshold =
      0;  ///< Values of at least this many bytes are kept apart from the keys; 0 = none are.
  /// The storage engine within the backend, if it has several: "innodb" or "myrocks" on mysql; empty: its
  /// default.
  std::string engine;
  /// Distinguishes a dataset from an earlier one of the same name. Chosen by the store at creation; stays the
  /// same when the dataset migrates.
  uint64_t incarnation = 0;
  /// The name of the dataset's tables, in a backend that has tables. Empty: the dataset's name. Else
  /// "NAME@NUMBER": the name was used before, and a process that has not heard of the drop must not find the
  /// new dataset's data. Chosen by the store at creation.
  std::string table = {};

  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;
};

/// Returns the name of the dataset's tables: DatasetSpec::table or, if that is empty, its name.
inline const std::string& TableName(const DatasetSpec& spec) {
  return spec.table.empty() ? spec.name : spec.table;
}
/// Returns DatasetSpec::table for the dataset that is the `number`th of its name.
std::string NumberedTable(std::string_view name, uint64_t number);

/// The settings that can be changed after creation; nullopt leaves one as it is.
struct DatasetChange {
  std::optional<uint32_t> max_versions;
  std::optional<uint64_t> ttl_ms;
  std::optional<Durability> durability;
  std::optional<uint64_t> keep_changes_ms;
  friend bool operator==(const DatasetChange&, const DatasetChange&) = default;
};

/// The names used in JSON and on the command line: "rows", "machine", "lz4".
std::string_view Name(Shape shape);
std::string_view Name(Durability durability);
std::string_view Name(Compression compression);

/// Returns the value of that name; nullopt for an unknown one.
std::optional<Shape> ParseShape(std::string_view name);
std::optional<Durability> ParseDurability(std::string_view name);
std::optional<Compression> ParseCompression(std::string_view name);

/// Checks the fields of a spec. INVALID_ARGUMENT names the field, the problem and the limit.
absl::Status Validate(const DatasetSpec& spec);

/// Returns `spec` with `change` applied. The result is not checked: see Validate.
DatasetSpec Apply(const DatasetSpec& spec, const DatasetChange& change);

}  // namespace kvstore
