#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_reader.h"
#include "export/table_columns.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/kvstore.h"

namespace kvstore::exports {

/// A dataset that is exported: parts that together have all of its units, each once, and that are read in
/// parallel. Thread-safe; scans must not outlive it.
class ExportSource {
 public:
  virtual ~ExportSource() = default;

  /// The time (ms) at which cells are judged to be expired or not.
  virtual uint64_t as_of_ms() const = 0;
  /// Whether all is read as it was at one moment (UnitSnapshot says what that is on many hosts); if not, each
  /// row, object and entry is read as it is at a moment of its own.
  virtual bool is_snapshot() const = 0;
  virtual size_t parts() const = 0;
  /// Reads a part. No row is in two parts.
  virtual absl::StatusOr<std::unique_ptr<UnitScan>> Open(size_t part) = 0;
};

/// Reads a snapshot of a dataset.
///
/// as_of_ms  nullopt: now.
/// wanted    about so many parts, if the backend may choose.
///
/// Errors as UnitReader::Snapshot: UNIMPLEMENTED if the backend takes none.
absl::StatusOr<std::unique_ptr<ExportSource>> OpenSnapshot(UnitReader& reader, const DatasetSpec& spec,
                                                           std::optional<uint64_t> as_of_ms, size_t wanted);

/// Reads a dataset by the scans that clients have. The store must outlive the source.
///
/// options  what tables are made, so that columns that are not needed are not read.
absl::StatusOr<std::unique_ptr<ExportSource>> OpenScans(KVStore& store, const DatasetSpec& spec,
                                                        const TableOptions& options, size_t wanted);

}  // namespace kvstore::exports
