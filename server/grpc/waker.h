#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>

#include "absl/synchronization/notification.h"

namespace kvstore::server {

/// Keeps the threads behind gRPC's callbacks awake. In gRPC 1.51 (completion_queue_cc.cc: nexting_thread)
/// each of them sleeps for 100 ms when it had no event for a second. A machine with few cores has two of
/// them, which may sleep at the same time, and then an event waits. With an event twice a second one of them
/// is always awake. Used by one thread.
class Waker {
 public:
  Waker() = default;
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  /// Gives the threads an event: the end of a call that fails at once, because it has no server.
  void Wake();

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::Slice empty;
    grpc::ByteBuffer request{&empty, 1};
    grpc::ByteBuffer response;
    absl::Notification ended;
  };

  /// A channel without credentials, on which every call fails (create_channel.h).
  grpc::GenericStub stub_{grpc::CreateChannel("", nullptr)};
  /// Destroyed by Wake or the destructor, never on a thread of the callbacks, which would wait for itself.
  std::unique_ptr<Call> call_;
};

}  // namespace kvstore::server
