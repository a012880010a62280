#include "server/grpc/grpc_transport.h"

#include <grpcpp/security/auth_context.h>

#include <chrono>

#include "wire/convert.h"

namespace kvstore::server {

CallInfo GrpcTransport::Info() {
  CallInfo info{.transport = *this, .door = Door::kGrpc};
  const auto left = context_.deadline() - std::chrono::system_clock::now();
  // gRPC gives a call without a deadline one in the far future.
  if (left < std::chrono::hours(24 * 365)) {
    info.deadline = info.begun + std::chrono::duration_cast<CallInfo::Clock::duration>(left);
  }
  return info;
}

std::optional<std::string_view> GrpcTransport::Metadata(const char* key) const {
  const auto& metadata = context_.client_metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  return std::string_view(found->second.data(), found->second.size());
}

std::string_view GrpcTransport::Authorization() const {
  return Metadata("authorization").value_or(std::string_view());
}

std::string GrpcTransport::CommonName() const {
  const auto peer = context_.auth_context();
  if (!peer || !peer->IsPeerAuthenticated()) return "";
  const auto names = peer->FindPropertyValues("x509_common_name");
  return names.empty() ? "" : std::string(names.front().data(), names.front().size());
}

std::optional<std::string_view> GrpcTransport::ExpectedBackend() const { return Metadata(wire::kBackend); }

bool GrpcTransport::WantsMigrationErrors() const { return Metadata(wire::kMoving) == wire::kTell; }

void GrpcTransport::SendOutcome(CallOutcome outcome) {
  context_.AddTrailingMetadata(wire::kOutcome, WireName(outcome));
}

const char* WireName(CallOutcome outcome) {
  switch (outcome) {
    case CallOutcome::kRefused:
      return wire::kRefused;
    case CallOutcome::kInDoubt:
      return wire::kInDoubt;
    case CallOutcome::kMoved:
      return wire::kMoved;
    case CallOutcome::kFailed:
      break;
  }
  return wire::kFailed;
}

}  // namespace kvstore::server
