#pragma once

#include <rocksdb/snapshot.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/unit_reader.h"
#include "backends/rocksdb/engine/engine.h"

/// Units in column families: how the stores' keys are read and written as units.
namespace kvstore::rocks {

/// Returns the family of this incarnation of the dataset. FAILED_PRECONDITION if the dataset is not here, or
/// only an earlier one of the same name.
absl::StatusOr<std::shared_ptr<Family>> FindDataset(const Engine& engine, const DatasetSpec& spec);

/// A snapshot of RocksDB, which is released with the last copy of this pointer; null: no snapshot, reads
/// return what is stored now.
using SharedSnapshot = std::shared_ptr<const rocksdb::Snapshot>;

/// Takes a snapshot of all families. It keeps the engine alive.
SharedSnapshot TakeSnapshot(std::shared_ptr<Engine> engine);

/// Reads the units of `keys`, in that order; as UnitView::Read.
absl::StatusOr<std::vector<Unit>> ReadUnits(Engine& engine, const Family& family, Shape shape,
                                            std::span<const std::string> keys, uint64_t as_of,
                                            const SharedSnapshot& snapshot);

/// Scans the units of `range`; as UnitView::Scan. The scan keeps engine, family and snapshot alive.
///
/// check  called after each page was read: tells whether what was read may be returned. The scan fails with
///        its error.
std::unique_ptr<UnitScan> ScanUnits(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family,
                                    Shape shape, const UnitRange& range, uint64_t as_of,
                                    SharedSnapshot snapshot, std::function<absl::Status()> check);

/// Adds to `batch` the changes after which the units have exactly these cells. No one else may write to the
/// units until the batch is written.
///
/// fresh  see UnitWriter::Replace.
absl::Status ReplaceUnits(Engine& engine, const Family& family, Shape shape, std::span<const Unit> units,
                          bool fresh, rocksdb::WriteBatch& batch);

}  // namespace kvstore::rocks
