#pragma once

#include <grpcpp/server_context.h>

#include "server/call/connections.h"

namespace kvstore::server {

/// Tells Connections of each call as soon as gRPC has read its headers. gRPC 1.51 starts the calls of a
/// connection only when it has read all that has arrived over it: thousands of them may be in memory before
/// the first one is authenticated, or refused.
class CountedContexts : public grpc::ContextAllocator {
 public:
  /// connections  Must outlive the server.
  explicit CountedContexts(Connections& connections) : connections_(connections) {}

  // Null has gRPC make, and delete, the context itself.
  grpc::CallbackServerContext* NewCallbackServerContext() override {
    connections_.CallArrived();
    return nullptr;
  }
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext() override {
    connections_.CallArrived();
    return nullptr;
  }
  void Release(grpc::CallbackServerContext*) override { connections_.CallLeft(); }
  void Release(grpc::GenericCallbackServerContext*) override { connections_.CallLeft(); }

 private:
  Connections& connections_;
};

}  // namespace kvstore::server
