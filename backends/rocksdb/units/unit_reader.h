#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/unit_reader.h"
#include "backends/rocksdb/engine/engine.h"

namespace kvstore::rocks {

/// Reads a dataset of the embedded store as units. Thread-safe.
class RocksUnitReader : public UnitReader {
 public:
  /// Those for whom it reads. A migration reads the dataset in all states; clients only while it serves here
  /// (gate.h).
  enum class Callers : uint8_t { kClients, kMigration };

  RocksUnitReader(std::shared_ptr<Engine> engine, DatasetSpec spec, Callers callers)
      : engine_(std::move(engine)), spec_(std::move(spec)), callers_(callers) {}

  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override;
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override;
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override;
  absl::StatusOr<std::unique_ptr<UnitSnapshot>> Snapshot(std::chrono::seconds max_age) override;
  absl::StatusOr<uint64_t> LastTimestamp() override;
  absl::StatusOr<LocalIdFloors> NextLocalIds() override;

 private:
  /// FAILED_PRECONDITION if the dataset is not here, or only an earlier one of the same name; for clients
  /// also the gate's refusal.
  absl::StatusOr<std::shared_ptr<Family>> Find() const;
  /// For clients: OK while the gate lets them read.
  absl::Status Check(const Family& family) const;

  const std::shared_ptr<Engine> engine_;
  const DatasetSpec spec_;
  const Callers callers_;
};

}  // namespace kvstore::rocks
