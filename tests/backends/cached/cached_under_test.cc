#include "tests/backends/cached/cached_under_test.h"

#include <fmt/format.h>

#include <utility>

#include "base/hash.h"

namespace kvstore::testing {
namespace {

std::unique_ptr<CacheFleet> shared_caches;

class CacheFleetEnvironment : public ::testing::Environment {
 public:
  void SetUp() override { shared_caches = std::make_unique<CacheFleet>(); }
  void TearDown() override { shared_caches.reset(); }
};

/// Ends the quarantine of all servers: nobody has written before.
absl::Status Trust(cached::Caches& caches) {
  if (auto status = caches.view().Refresh(); !status.ok()) return status;
  const auto view = caches.view().Load();
  for (cached::Cache* cache : {&caches.objects(), &caches.mappings()}) {
    for (const auto& server : cache->Servers(*view)) {
      const auto status = server->Change(view->view.list, [](cached::Guard& guard) {
        guard.trusted = true;
        return true;
      });
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

CacheOptions CacheFleet::Options() const {
  return {.memcached = {memcached.address()},
          .redis = {redis.address()},
          .redis_login = {},
          .ttl_s = 600,
          .timeout_ms = 2000,
          .connections = 16,
          .lease_ms = 100,
          .quarantine_s = 30};
}

std::unique_ptr<CachedBackend> CacheFleet::Open(std::unique_ptr<Backend> of, const std::string& node,
                                                const CacheOptions& options) const {
  const ZooKeeperOptions at{
      .servers = zookeeper.address(), .auth = {}, .session_timeout_ms = 4000, .call_timeout_ms = 2000};
  return std::make_unique<CachedBackend>(std::move(of), std::make_unique<cached::Caches>(options, at, node));
}

bool ShareCacheFleet() { return ::testing::AddGlobalTestEnvironment(new CacheFleetEnvironment) != nullptr; }

CacheFleet& SharedCacheFleet() { return *shared_caches; }

UnderTest Cached(const UnderTest& inner) {
  UnderTest cached = inner;
  cached.name = inner.name + "Cached";
  cached.open = [inner](const std::filesystem::path& dir,
                        std::span<const DatasetSpec> known) -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto opened = inner.open(dir, known);
    if (!opened.ok()) return opened.status();
    // Each test is a store of its own: the datasets of all have the same incarnations.
    const std::string node = fmt::format("/suite/caches/{:x}", Fnv1a(dir.string()));
    auto backend = SharedCacheFleet().Open(*std::move(opened), node, SharedCacheFleet().Options());
    if (known.empty()) {
      if (auto used = backend->caches().UseServers({}); !used.ok()) return used;
    }
    if (auto status = Trust(backend->caches()); !status.ok()) return status;
    return backend;
  };
  cached.disturb = [inner](Backend& backend, const DatasetSpec& spec, Random& random) {
    inner.disturb(dynamic_cast<CachedBackend&>(backend).of(), spec, random);
  };
  cached.operations = inner.operations / 2;
  return cached;
}

}  // namespace kvstore::testing
