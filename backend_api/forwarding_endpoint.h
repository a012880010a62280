#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend_api/migration_endpoint.h"

namespace kvstore {

/// Hands every call on to another endpoint. A class that changes some calls derives from it and overrides
/// those. Thread-safe, if the other endpoint is.
class ForwardingEndpoint : public MigrationEndpoint {
 public:
  /// wrapped  Not null.
  explicit ForwardingEndpoint(std::unique_ptr<MigrationEndpoint> wrapped) : inner(std::move(wrapped)) {}

  absl::StatusOr<std::string> Extent() override { return inner->Extent(); }
  absl::Status Limit(const std::string& extent) override { return inner->Limit(extent); }
  absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) override {
    return inner->Reassert(epoch, state, capture);
  }
  absl::StatusOr<EndpointStatus> Status() override { return inner->Status(); }
  absl::StatusOr<std::string> BootId() override { return inner->BootId(); }
  absl::Status RaiseEpoch(uint64_t epoch) override { return inner->RaiseEpoch(epoch); }
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    return inner->TransitionTo(epoch, state, capture);
  }
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override { return inner->ReadDirty(limit); }
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) override {
    return inner->RemoveDirty(epoch, entries);
  }
  absl::StatusOr<DirtyLag> Lag() override { return inner->Lag(); }
  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override {
    return inner->Partitions(wanted);
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    return inner->Read(keys, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override {
    return inner->Scan(range, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitSnapshot>> Snapshot(std::chrono::seconds max_age) override {
    return inner->Snapshot(max_age);
  }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override {
    return inner->Replace(epoch, units, fresh);
  }
  absl::StatusOr<uint64_t> LastTimestamp() override { return inner->LastTimestamp(); }
  absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) override {
    return inner->RaiseTimestamp(epoch, timestamp);
  }
  absl::StatusOr<LocalIdFloors> NextLocalIds() override { return inner->NextLocalIds(); }
  absl::Status RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) override {
    return inner->RaiseLocalIds(epoch, next);
  }

 protected:
  const std::unique_ptr<MigrationEndpoint> inner;
};

}  // namespace kvstore
