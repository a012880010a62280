#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cached/protocol/cache.h"
#include "backends/cached/protocol/caches.h"
#include "tests/support/cache_server.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::cached {

inline constexpr char kNode[] = "/kvstore/caches/users";
inline constexpr Cache::Key kKey{.incarnation = 1, .id = 7};

/// One value in a backend, which counts its reads.
struct Master {
  std::atomic<int> value{1};
  std::atomic<int> reads{0};
  std::atomic<int> pause_ms{0};
};

/// Caches of one or more processes in front of a value, with a real memcached and a real ZooKeeper.
class CacheTest : public ::testing::Test {
 protected:
  static CacheOptions Options(std::vector<std::string> memcached) {
    return {.memcached = std::move(memcached),
            .redis = {},
            .redis_login = {},
            .ttl_s = 600,
            .timeout_ms = 1000,
            .connections = 16,
            .lease_ms = 500,
            .quarantine_s = 1};
  }
  std::unique_ptr<Caches> Open(std::vector<std::string> memcached) {
    return std::make_unique<Caches>(Options(std::move(memcached)), ZooKeeper(), kNode);
  }
  /// The first that is opened brings its servers into force.
  std::unique_ptr<Caches> Open() {
    auto caches = Open({memcached_.address()});
    if (!std::exchange(used_, true)) {
      EXPECT_OK(caches->UseServers({}));
    }
    return caches;
  }
  ZooKeeperOptions ZooKeeper() const {
    return {.servers = zookeeper_.address(), .auth = {}, .session_timeout_ms = 4000, .call_timeout_ms = 1500};
  }

  /// Reads the value as a store does.
  int Read(Caches& caches, Cache::Key key = kKey) {
    const Found found = std::move(caches.objects().Find({&key, 1}, 'v').front());
    if (found.value) return std::stoi(*found.value);
    ++master_.reads;
    const int value = master_.value;
    if (master_.pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(master_.pause_ms));
    if (found.lease) Fill(caches, *found.lease, std::to_string(value));
    return value;
  }
  static void Fill(Caches& caches, const Found::Lease& lease, const std::string& value) {
    const Cache::Filling filling{&lease, value};
    caches.objects().Fill({&filling, 1});
  }
  absl::Status Write(Caches& caches, int value) {
    return caches.objects().Write(kKey, [&] {
      master_.value = value;
      return absl::OkStatus();
    });
  }
  /// Waits until reads are answered by the cache.
  ::testing::AssertionResult IsCached(Caches& caches, Cache::Key key = kKey) {
    const auto hit = [&] {
      const int before = master_.reads;
      return Read(caches, key) == master_.value && master_.reads == before;
    };
    return testing::Eventually(hit) ? ::testing::AssertionSuccess()
                                    : ::testing::AssertionFailure() << "nothing is cached";
  }
  bool Suspended(Caches& caches, const testing::CacheServer& server) {
    const auto view = caches.view().Load();
    return view != nullptr && view->view.suspended.contains("memcached " + server.address());
  }

  testing::ZooKeeperServer zookeeper_;
  testing::CacheServer memcached_{testing::CacheServer::Kind::kMemcached};
  Master master_;
  bool used_ = false;
};

}  // namespace kvstore::cached
