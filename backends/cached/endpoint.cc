#include "backends/cached/endpoint.h"

#include <utility>

namespace kvstore::cached {
namespace {

class Endpoint : public MigrationEndpoint {
 public:
  Endpoint(std::unique_ptr<MigrationEndpoint> of, std::shared_ptr<Caches> caches, CacheKind kind,
           uint64_t incarnation)
      : of_(std::move(of)), caches_(std::move(caches)), kind_(kind), incarnation_(incarnation) {}

  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    // Writes are about to be held: there is no time then to wait until everybody knows of a dead server.
    if (state == EndpointState::kFrozen) {
      if (auto status = caches_->SuspendDead(kind_); !status.ok()) return status;
    }
    if (auto status = of_->TransitionTo(epoch, state, capture); !status.ok()) return status;
    return AfterBecoming(state);
  }
  absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) override {
    if (auto status = of_->Reassert(epoch, state, capture); !status.ok()) return status;
    return AfterBecoming(state);
  }

  // All else is that of the backend behind.
  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override {
    return of_->Partitions(wanted);
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    return of_->Read(keys, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override {
    return of_->Scan(range, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitSnapshot>> Snapshot(std::chrono::seconds max_age) override {
    return of_->Snapshot(max_age);
  }
  absl::StatusOr<uint64_t> LastTimestamp() override { return of_->LastTimestamp(); }
  absl::StatusOr<std::map<uint32_t, uint64_t>> NextLocalIds() override { return of_->NextLocalIds(); }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override {
    return of_->Replace(epoch, units, fresh);
  }
  absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) override {
    return of_->RaiseTimestamp(epoch, timestamp);
  }
  absl::Status RaiseLocalIds(uint64_t epoch, const std::map<uint32_t, uint64_t>& next) override {
    return of_->RaiseLocalIds(epoch, next);
  }
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override { return of_->ReadDirty(limit); }
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) override {
    return of_->RemoveDirty(epoch, entries);
  }
  absl::StatusOr<DirtyLag> Lag() override { return of_->Lag(); }
  absl::StatusOr<std::string> Extent() override { return of_->Extent(); }
  absl::Status Limit(const std::string& extent) override { return of_->Limit(extent); }
  absl::StatusOr<EndpointStatus> Status() override { return of_->Status(); }
  absl::StatusOr<std::string> BootId() override { return of_->BootId(); }
  absl::Status RaiseEpoch(uint64_t epoch) override { return of_->RaiseEpoch(epoch); }

 private:
  absl::Status AfterBecoming(EndpointState state) {
    switch (state) {
      case EndpointState::kServing:
      case EndpointState::kFrozen:
        return absl::OkStatus();
      case EndpointState::kAbsent:
      case EndpointState::kImporting:
      case EndpointState::kMoved:
        break;
    }
    Cache& cache = kind_ == CacheKind::kObjects ? caches_->objects() : caches_->mappings();
    return cache.Leave(incarnation_);
  }

  const std::unique_ptr<MigrationEndpoint> of_;
  const std::shared_ptr<Caches> caches_;
  const CacheKind kind_;
  const uint64_t incarnation_;
};

}  // namespace

std::unique_ptr<MigrationEndpoint> MakeEndpoint(std::unique_ptr<MigrationEndpoint> of,
                                                std::shared_ptr<Caches> caches, CacheKind kind,
                                                const DatasetSpec& spec) {
  return std::make_unique<Endpoint>(std::move(of), std::move(caches), kind, spec.incarnation);
}

}  // namespace kvstore::cached
