#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

#include "server/call/call_info.h"

namespace kvstore::server {

/// The gRPC side of a call, or of a stream of calls. The context must outlive it.
class GrpcTransport : public CallTransport {
 public:
  explicit GrpcTransport(grpc::CallbackServerContext& context) : context_(context) {}

  /// Returns what Call needs to know of this call, which has arrived just now.
  CallInfo Info();

  std::string_view Authorization() const override;
  std::string CommonName() const override;
  std::string Peer() const override { return context_.peer(); }
  std::optional<std::string_view> ExpectedBackend() const override;
  bool WantsMigrationErrors() const override;
  void Cancel() override { context_.TryCancel(); }
  void SendOutcome(CallOutcome outcome) override;

 private:
  /// Returns the value of a key of the request's metadata.
  std::optional<std::string_view> Metadata(const char* key) const;

  grpc::CallbackServerContext& context_;
};

/// Returns the outcome as kvstore.proto spells it: wire::kRefused and its like.
const char* WireName(CallOutcome outcome);

}  // namespace kvstore::server
