#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

struct redisContext;

namespace kvstore::bench {

/// A connection to a server that speaks the Redis protocol, on this machine: redis-server, or ours. A call
/// that fails ends the benchmark. Externally synchronised.
class RedisClient {
 public:
  /// UNAVAILABLE if nobody listens there.
  static absl::StatusOr<RedisClient> Connect(uint16_t port);

  /// Sends a command of at most 32 words; its reply must be received by ReceiveReply.
  void Send(std::span<const std::string_view> words);
  /// Receives the next reply. Returns how many elements it has, after copying out the texts in it, as any
  /// caller must; or the number that it is.
  size_t ReceiveReply();

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };
  explicit RedisClient(redisContext* context) : context_(context) {}

  std::unique_ptr<redisContext, Free> context_;
};

}  // namespace kvstore::bench
