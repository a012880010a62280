#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend_api/migration_endpoint.h"
#include "client/caller.h"
#include "kvstore/v1/endpoint.pb.h"
#include "kvstore_api/dataset.h"

namespace kvstore::client {

/// A dataset in a backend of another server, as a migration sees it (endpoint.proto). Requests that change
/// something are not retried when they were lost: after UNAVAILABLE or DEADLINE_EXCEEDED the change may have
/// happened, or may still happen. Thread-safe.
class RemoteEndpoint : public MigrationEndpoint {
 public:
  RemoteEndpoint(std::shared_ptr<Caller> caller, const DatasetSpec& spec);

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
  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t wanted) override;
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override;
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override;
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override;
  absl::StatusOr<uint64_t> LastTimestamp() override;
  absl::Status RaiseTimestamp(uint64_t epoch, uint64_t timestamp) override;
  absl::StatusOr<LocalIdFloors> NextLocalIds() override;
  absl::Status RaiseLocalIds(uint64_t epoch, const LocalIdFloors& next) override;

 private:
  v1::EndpointRequest NewRequest(uint64_t epoch = 0) const;

  /// Sends a request that changes nothing, with retries.
  absl::Status Query(const v1::EndpointRequest& request, v1::EndpointResponse& response);
  /// Sends a request for a change, once.
  absl::Status Change(const v1::EndpointRequest& request);

  const std::shared_ptr<Caller> caller_;
  const DatasetSpec spec_;
  std::string extent_;  // sent with each request; set by Limit before anything else is called
};

}  // namespace kvstore::client
