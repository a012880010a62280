#pragma once

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore/v1/endpoint.grpc.pb.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore/v1/reports.grpc.pb.h"
#include "kvstore/v1/shards.grpc.pb.h"
#include "kvstore_api/connect.h"

namespace kvstore::client {

/// The connections to one server. Each has a socket of its own, because one socket can only carry so many
/// calls a second. Thread-safe.
class Channels {
 public:
  /// Returns at once; connections are made when they are used. INVALID_ARGUMENT names a mistake in the
  /// address or in the options.
  static absl::StatusOr<std::unique_ptr<Channels>> Open(const std::string& address,
                                                        const ConnectOptions& options);

  /// Returns the stub of one connection, always the same for a thread.
  v1::KVStore::StubInterface& Stub() const { return *stubs_[Number()]; }
  v1::Endpoints::StubInterface& Endpoints() const { return *endpoints_[Number()]; }
  v1::Reports::StubInterface& Reports() const { return *reports_[Number()]; }
  v1::Shards::StubInterface& Shards() const { return *shards_[Number()]; }
  /// Returns the connection itself, for what the stubs do not offer.
  grpc::ChannelInterface& Channel() const { return *channels_[Number()]; }
  /// Returns which connection the thread uses.
  size_t Number() const;
  /// Waits, but if the thread's connection was lost only until soon after it is there again. gRPC reconnects
  /// while a thread waits for the connection, and else every five seconds; therefore callers must wait here,
  /// and not sleep.
  void Pause(std::chrono::microseconds pause) const;
  size_t count() const { return stubs_.size(); }
  const std::string& address() const { return address_; }

 private:
  explicit Channels(std::string address) : address_(std::move(address)) {}

  const std::string address_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<v1::KVStore::StubInterface>> stubs_;
  std::vector<std::unique_ptr<v1::Endpoints::StubInterface>> endpoints_;  // on the same channels
  std::vector<std::unique_ptr<v1::Reports::StubInterface>> reports_;      // on the same channels
  std::vector<std::unique_ptr<v1::Shards::StubInterface>> shards_;        // on the same channels
};

}  // namespace kvstore::client
