#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/rocksdb/engine.h"
#include "kvstore_api/migration_endpoint.h"

/// Units of migrations in column families: how the stores' keys are read and written as units.
namespace kvstore::rocks {

absl::StatusOr<std::vector<Unit>> ReadUnits(Engine& engine, const Family& family, Shape shape,
                                            std::span<const std::string> keys, uint64_t as_of);

std::unique_ptr<UnitScan> ScanUnits(std::shared_ptr<Engine> engine, std::shared_ptr<Family> family,
                                    Shape shape, const UnitRange& range, uint64_t as_of);

/// Adds to a batch that the units have exactly these cells. Nobody else may write meanwhile.
absl::Status ReplaceUnits(Engine& engine, const Family& family, Shape shape, std::span<const Unit> units,
                          bool fresh, rocksdb::WriteBatch& batch);

}  // namespace kvstore::rocks
