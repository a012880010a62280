#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore {

/// The address of a MySQL server.
struct Host {
  static constexpr uint16_t kDefaultPort = 3306;
  std::string name;  ///< A host name or IPv4 address.
  uint16_t port = kDefaultPort;

  /// Returns "NAME", followed by ":PORT" if that is not the default one, as the shard map has it.
  std::string ToString() const;
  /// Parses what ToString returns. INVALID_ARGUMENT if it is not a host name with an optional port.
  static absl::StatusOr<Host> Parse(std::string_view text);
  friend auto operator<=>(const Host&, const Host&) = default;
};

/// The highest number of a shard.
inline constexpr uint32_t kMaxShardNumber = 65535;

/// Shards first..last, both included, and the pair of hosts that has them.
struct ShardRange {
  uint32_t first = 0;
  uint32_t last = 0;
  Host master;  ///< All reads and writes go here.
  Host slave;   ///< The master's replica, which can be promoted.
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

}  // namespace kvstore
