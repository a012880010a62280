#include "backends/cached/endpoint.h"

#include <utility>

#include "backend_api/forwarding_endpoint.h"

namespace kvstore::cached {
namespace {

class Endpoint : public ForwardingEndpoint {
 public:
  Endpoint(std::unique_ptr<MigrationEndpoint> of, std::shared_ptr<Caches> caches, CacheKind kind,
           uint64_t incarnation)
      : ForwardingEndpoint(std::move(of)),
        caches_(std::move(caches)),
        kind_(kind),
        incarnation_(incarnation) {}

  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    // Writes are about to be held: there is no time then to wait until everybody knows of a dead server.
    if (state == EndpointState::kFrozen) {
      if (auto status = caches_->SuspendDead(kind_); !status.ok()) return status;
    }
    if (auto status = inner->TransitionTo(epoch, state, capture); !status.ok()) return status;
    return AfterBecoming(state);
  }
  absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) override {
    if (auto status = inner->Reassert(epoch, state, capture); !status.ok()) return status;
    return AfterBecoming(state);
  }

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
