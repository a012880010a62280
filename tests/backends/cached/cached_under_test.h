#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cached/backend.h"
#include "tests/backend_suite/suite.h"
#include "tests/support/cache_server.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::testing {

/// ZooKeeper, a memcached and a Redis server, which the tests of a program share.
struct CacheFleet {
  ZooKeeperServer zookeeper;
  CacheServer memcached{CacheServer::Kind::kMemcached};
  CacheServer redis{CacheServer::Kind::kRedis};

  /// Options for these, with short times.
  CacheOptions Options() const;
  /// Caches in front of a backend, whose servers are those that the node names.
  std::unique_ptr<CachedBackend> Open(std::unique_ptr<Backend> of, const std::string& node,
                                      const CacheOptions& options) const;
};

/// Starts them before the first test of this program. To be called once, from an initialiser of the program,
/// before ShareFleet.
bool ShareCacheFleet();
CacheFleet& SharedCacheFleet();

/// A backend behind caches, which are trusted by the time it is open.
UnderTest Cached(const UnderTest& inner);

}  // namespace kvstore::testing
