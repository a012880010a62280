#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include "server/call/call.h"

namespace kvstore::server {

/// Answers calls of methods that the server does not have with UNIMPLEMENTED, as gRPC does by itself, and
/// counts those of strangers as other calls that are refused (Connections).
class UnknownMethods : public grpc::CallbackGenericService {
 public:
  /// core  Must outlive this.
  explicit UnknownMethods(Core& core) : core_(core) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  Core& core_;
};

}  // namespace kvstore::server
