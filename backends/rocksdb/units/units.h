#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/migration_endpoint.h"
#include "backends/rocksdb/engine/engine.h"

/// Units of migrations in column families: how the stores' keys are read and written as units.
namespace kvstore::rocks {

/// Reads the units of `keys`, in that order; as MigrationEndpoint::Read.
absl::StatusOr<std::vector<Unit>> ReadUnits(Engine& engine, const Family& family, Shape shape,
                                            std::span<const std::string> keys, uint64_t as_of);

/// Scans the units of `range`; as MigrationEndpoint::Scan. The scan keeps engine and family alive.
std::unique_ptr<UnitScan> ScanUnits(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family,
                                    Shape shape, const UnitRange& range, uint64_t as_of);

/// Adds to `batch` the changes after which the units have exactly these cells. No one else may write to the
/// units until the batch is written.
///
/// fresh  see MigrationEndpoint::Replace.
absl::Status ReplaceUnits(Engine& engine, const Family& family, Shape shape, std::span<const Unit> units,
                          bool fresh, rocksdb::WriteBatch& batch);

}  // namespace kvstore::rocks
