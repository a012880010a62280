#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>

#include "absl/synchronization/notification.h"

namespace kvstore::server {

/// Keeps the threads behind gRPC's callbacks awake. Those of gRPC 1.51 (completion_queue_cc.cc:
/// nexting_thread) sleep for 100 ms whenever nothing has come to them for a second. There are two of them on
/// a machine with few cores, they may do so together, and what comes then, waits. Something that comes twice
/// a second always has one of them awake. For one thread.
class Waker {
 public:
  Waker() = default;
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  /// Something comes to the threads: the end of a call that fails at once, because it has no server.
  void Wake();

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::Slice empty;
    grpc::ByteBuffer request{&empty, 1};
    grpc::ByteBuffer response;
    absl::Notification ended;
  };

  /// Without credentials it is one on which everything fails (create_channel.h).
  grpc::GenericStub stub_{grpc::CreateChannel("", nullptr)};
  /// Never gone on a thread of the callbacks, which would end them, and so itself.
  std::unique_ptr<Call> call_;
};

}  // namespace kvstore::server
