#pragma once

#include <grpcpp/impl/service_type.h>

#include <functional>

#include "server/brief_calls.h"

namespace kvstore::server {

/// Check of grpc.health.v1.Health, for the server as a whole, whichever service is asked for. Anybody may
/// ask, so the request is not read. There is no Watch, whose streams a stranger could open without end:
/// clients take the UNIMPLEMENTED for "do not watch".
class HealthService : public grpc::Service {
 public:
  /// serves  Whether the server takes calls; asked on any thread.
  /// open    Counts the calls; must outlive it.
  HealthService(std::function<bool()> serves, BriefCalls& open);
};

}  // namespace kvstore::server
