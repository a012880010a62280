#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options.h"
#include "kvstore/v1/endpoint.grpc.pb.h"
#include "kvstore/v1/kvstore.grpc.pb.h"

namespace kvstore::client {

/// The connections to one server. Each has its own socket, because one carries only so many calls a second.
/// Thread-safe.
class Channels {
 public:
  static absl::StatusOr<std::unique_ptr<Channels>> Open(const std::string& address,
                                                        const ConnectOptions& options);

  /// One of them, always the same for a thread.
  v1::KVStore::StubInterface& Stub() const { return *stubs_[Number()]; }
  v1::Endpoints::StubInterface& Endpoints() const { return *endpoints_[Number()]; }
  /// Which.
  size_t Number() const;
  /// Waits; hardly longer than until this thread's connection is there again, if it was lost. gRPC makes a
  /// connection only while a thread waits for it, or else every five seconds: who sleeps instead sleeps long.
  void Pause(std::chrono::microseconds pause) const;
  size_t count() const { return stubs_.size(); }
  const std::string& address() const { return address_; }

 private:
  explicit Channels(std::string address) : address_(std::move(address)) {}

  const std::string address_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<v1::KVStore::StubInterface>> stubs_;
  std::vector<std::unique_ptr<v1::Endpoints::StubInterface>> endpoints_;  // on the same channels
};

}  // namespace kvstore::client
