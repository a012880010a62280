#pragma once

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <string>

#include "server/call/call.h"

namespace kvstore::server {

/// The services of the .proto files: each method starts a call of its kind.
///
/// The generated services read the request of a call before anything else. Therefore this registers every
/// method as one with streams, which is the same on the wire: so a call reads its request itself, after it
/// has authenticated the caller.
class Service : public grpc::Service {
 public:
  /// core  Must outlive the service.
  explicit Service(Core& core);

 private:
  /// Reactor  The class of the method's calls. It deletes itself when gRPC is done with it, which is not
  /// before
  ///          it was returned to gRPC.
  template <typename Reactor>
  void Add(Operation operation, const char* service, const char* method = nullptr);

  Core& core_;
  std::deque<std::string> names_;  // of the methods; gRPC keeps pointers to them
};

}  // namespace kvstore::server
