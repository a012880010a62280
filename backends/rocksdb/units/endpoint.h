#pragma once

#include <memory>
#include <string>

#include "backends/rocksdb/engine.h"
#include "kvstore_api/migration_endpoint.h"

namespace kvstore {
class RocksDbBackend;
}

namespace kvstore::rocks {

/// A dataset of the embedded store, as a migration sees it: one partition. Its state is kept in the default
/// family as long as it is not plainly serving (see Engine::StoreGate). Thread-safe.
class RocksEndpoint : public MigrationEndpoint {
 public:
  /// The backend must outlive it.
  RocksEndpoint(RocksDbBackend& backend, std::shared_ptr<Engine> engine, DatasetSpec spec)
      : backend_(backend), engine_(std::move(engine)), spec_(std::move(spec)) {}

  absl::StatusOr<std::string> Extent() override;
  absl::Status Limit(const std::string& extent) override;
  absl::StatusOr<EndpointStatus> Status() override;
  absl::StatusOr<std::string> Boot() override;
  absl::Status RaiseEpoch(uint64_t epoch) override;
  absl::Status Enter(uint64_t epoch, EndpointState state, bool capture) override;
  absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) override;
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override;
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) override;
  absl::StatusOr<DirtyLag> Lag() override;
  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override;
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override;
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override;
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override;
  absl::StatusOr<uint64_t> LastTimestamp() override;
  absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) override;
  absl::StatusOr<std::map<uint32_t, uint64_t>> NextLocalIds() override;
  absl::Status RaiseLocalIds(uint64_t epoch, const std::map<uint32_t, uint64_t>& next) override;

 private:
  absl::StatusOr<std::shared_ptr<Family>> Find() const;
  absl::Status EnterAbsent(uint64_t epoch);

  RocksDbBackend& backend_;
  const std::shared_ptr<Engine> engine_;
  const DatasetSpec spec_;
};

}  // namespace kvstore::rocks
