#pragma once

#include <memory>
#include <string>

#include "backend_api/migration_endpoint.h"
#include "backends/rocksdb/engine/engine.h"
#include "backends/rocksdb/objects/local_ids.h"
#include "backends/rocksdb/units/unit_reader.h"

namespace kvstore::rocks {

/// A dataset of the embedded store, as a migration sees it: one partition. Its state is stored in the default
/// family, unless it serves and no migration is under way (gate_store.h). Thread-safe.
class RocksEndpoint : public MigrationEndpoint {
 public:
  RocksEndpoint(std::shared_ptr<Engine> engine, DatasetSpec spec, std::shared_ptr<LocalIdsRegistry> ids)
      : engine_(std::move(engine)),
        spec_(std::move(spec)),
        ids_(std::move(ids)),
        reader_(engine_, spec_, RocksUnitReader::Callers::kMigration) {}

  absl::StatusOr<std::string> Extent() override;
  absl::Status Limit(const std::string& extent) override;
  absl::StatusOr<EndpointStatus> Status() override;
  absl::StatusOr<std::string> BootId() override;
  absl::Status RaiseEpoch(uint64_t epoch) override;
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override;
  absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) override;
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override;
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) override;
  absl::StatusOr<DirtyLag> Lag() override;
  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override {
    return reader_.Partitions(wanted);
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    return reader_.Read(keys, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override {
    return reader_.Scan(range, as_of);
  }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override;
  absl::StatusOr<uint64_t> LastTimestamp() override { return reader_.LastTimestamp(); }
  absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) override;
  absl::StatusOr<LocalIdFloors> NextLocalIds() override { return reader_.NextLocalIds(); }
  absl::Status RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) override;

 private:
  absl::Status EnterAbsent(uint64_t epoch);

  const std::shared_ptr<Engine> engine_;
  const DatasetSpec spec_;
  const std::shared_ptr<LocalIdsRegistry> ids_;
  RocksUnitReader reader_;
};

}  // namespace kvstore::rocks
