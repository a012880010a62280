#pragma once

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/server_callback.h>

#include <deque>
#include <string>

#include "server/call.h"

namespace kvstore::server {

/// The services of kvstore.proto and endpoint.proto: each method starts a call of its kind.
///
/// They are not the generated ones, which read the request of a call before anything else: here every method
/// is one with streams for gRPC, which is the same on the wire, so that a call reads its request itself, when
/// it knows who calls.
class Service : public grpc::Service {
 public:
  /// core  must outlive it.
  explicit Service(Core& core);

 private:
  /// Reactor  of the calls: deletes itself when gRPC is done with it, at the earliest after it was returned.
  template <typename Reactor>
  void Add(Operation operation, const char* service = "kvstore.v1.KVStore", const char* method = nullptr);

  Core& core_;
  std::deque<std::string> names_;  // of the methods, which gRPC keeps pointers to
};

}  // namespace kvstore::server
