#pragma once

#include <grpcpp/impl/service_type.h>

#include <functional>
#include <string>

#include "server/call/brief_calls.h"

namespace kvstore::server {

/// The method Check of grpc.health.v1.Health. It answers for the server as a whole, whichever service is
/// asked for, so the request is not read; and it answers anybody. There is no Watch, because a stranger could
/// open its streams without end; clients take the UNIMPLEMENTED as "do not watch".
class HealthService : public grpc::Service {
 public:
  /// serves  Returns whether the server accepts calls. Called on any thread.
  /// called  Called with the peer of each call, on any thread.
  /// open    Limits the calls. Must outlive this.
  HealthService(std::function<bool()> serves, std::function<void(const std::string& peer)> called,
                BriefCalls& open);
};

}  // namespace kvstore::server
