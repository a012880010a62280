#include "backends/cached/protocol/caches.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "backends/cached/servers/memcached.h"
#include "backends/cached/servers/redis.h"
#include "backends/cached/servers/tls_client.h"
#include "base/random_number.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::cached {
namespace {

/// No servers: the first process must not have others read what processes without caches write.
View FirstView(const CacheOptions& options) {
  View view;
  view.id = RandomNumber() >> 1;
  view.list = 1;
  view.lease_ms = options.lease_ms;
  view.quarantine_s = options.quarantine_s;
  return view;
}

/// The names of a view's servers.
std::set<std::string> NamesOf(const View& view) {
  std::set<std::string> names;
  for (const std::string& server : view.memcached) names.insert("memcached " + server);
  for (const std::string& server : view.redis) names.insert("redis " + server);
  return names;
}

/// Waits until no process can still trust a view that was before the one that this process has just written.
absl::Status AwaitLease(std::chrono::milliseconds lease) {
  const auto end = BootClock::now() + lease;
  while (BootClock::now() < end) {
    if (auto status = CheckCall(); !status.ok()) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return absl::OkStatus();
}

std::shared_ptr<TlsClient> MakeTls(const std::optional<ClientTls>& files) {
  return files ? std::make_shared<TlsClient>(*files) : nullptr;
}

/// Opens servers with `open` as the options say.
Cache::OpenServer Opener(std::unique_ptr<Server> (*open)(const ServerOptions&), const CacheOptions& options,
                         const Login& login, std::shared_ptr<TlsClient> tls) {
  ServerOptions common{.timeout = std::chrono::milliseconds(options.timeout_ms),
                       .connections = options.connections,
                       .user = login.user,
                       .password = login.password,
                       .tls = std::move(tls)};
  return [open, common](const std::string& address, const std::string& guard) {
    ServerOptions one = common;
    one.address = address;
    one.guard = guard;
    return open(one);
  };
}

}  // namespace

Caches::Caches(const CacheOptions& options, const ZooKeeperOptions& zookeeper, const std::string& node)
    : options_(options),
      memcached_tls_(MakeTls(options.memcached_tls)),
      redis_tls_(MakeTls(options.redis_tls)),
      open_memcached_(Opener(OpenMemcached, options, {}, memcached_tls_)),
      open_redis_(Opener(OpenRedis, options, options.redis_login, redis_tls_)),
      view_(zookeeper, node, FirstView(options)),
      objects_(CacheKind::kObjects, options_, view_, open_memcached_),
      mappings_(CacheKind::kMappings, options_, view_, open_redis_) {}

absl::Status Caches::CheckTls() {
  const auto check = [](std::string_view field, TlsClient* tls) {
    const absl::StatusOr<std::shared_ptr<SSL_CTX>> context = tls == nullptr ? nullptr : tls->Context();
    if (context.ok()) return absl::OkStatus();
    return absl::Status(context.status().code(),
                        fmt::format("{}.{}", field, std::string(context.status().message())));
  };
  auto status = check("objects", memcached_tls_.get());
  if (status.ok()) status = check("mappings", redis_tls_.get());
  return status;
}

bool Caches::IsAsConfigured(const View& view) const {
  return view.memcached == options_.memcached && view.redis == options_.redis &&
         view.lease_ms == options_.lease_ms && view.quarantine_s == options_.quarantine_s;
}

absl::Status Caches::UseServers(const std::set<std::string>& stopped) {
  const auto remember = [](View& view) {
    std::set<std::string> before = NamesOf(view);
    before.insert(view.before.begin(), view.before.end());
    view.before.assign(before.begin(), before.end());
  };
  // First nobody reads.
  const uint64_t number = (RandomNumber() >> 1) | 1;
  auto status = view_.Change([&](View& view) {
    remember(view);
    view.changing = number;
    return true;
  });
  if (!status.ok()) return status;
  if (status = AwaitLease(std::chrono::milliseconds(view_.Load()->view.lease_ms)); !status.ok())
    return status;
  // Then who hears of it marks other servers,
  View mine;
  status = view_.Change([&](View& view) {
    mine = {};  // of an attempt before, which somebody else came before
    if (view.changing != number) return false;
    remember(view);
    ++view.list;
    view.memcached = options_.memcached;
    view.redis = options_.redis;
    view.lease_ms = options_.lease_ms;
    view.quarantine_s = options_.quarantine_s;
    mine = view;
    return true;
  });
  if (!status.ok()) return status;
  absl::Status another = absl::AbortedError(
      "caches: another kv cache use was under way at the same time: look at kv cache status");
  if (mine.list == 0) return another;
  // and the servers of before tell it to those who have not heard.
  for (const std::string& name : mine.before) {
    const Cache::OpenServer& open = name.starts_with("redis ") ? open_redis_ : open_memcached_;
    GuardedServer server(open(name.substr(name.find(' ') + 1), GuardKey(mine)));
    status = server.Change(mine.list, [&](Guard& guard) {
      Renew(guard, mine.list);
      return true;
    });
    if (absl::IsAborted(status)) return another;
    if (status.ok() || stopped.contains(name)) continue;
    return absl::FailedPreconditionError(fmt::format(
        "caches: {} is of the list before, and does not answer. If it is stopped for good, say so with "
        "--stopped; until then no cache is read. ({})",
        name, std::string(status.message())));
  }
  // Now it is in force everywhere.
  bool done = false;
  status = view_.Change([&](View& view) {
    done = view.changing == number;
    if (!done) return false;
    view.changing = 0;
    view.before.clear();
    const std::set<std::string> names = NamesOf(view);
    std::erase_if(view.suspended, [&](const auto& server) { return !names.contains(server.first); });
    return true;
  });
  if (status.ok() && !done) return another;
  return status;
}

absl::Status Caches::Drop() {
  const absl::Status objects = objects_.Drop();
  const absl::Status mappings = mappings_.Drop();
  return objects.ok() ? mappings : objects;
}

absl::Status Caches::SuspendDead(CacheKind kind) {
  if (auto status = view_.Refresh(); !status.ok()) return status;
  const auto view = view_.Load();
  Cache& cache = CacheOf(kind);
  for (const auto& server : cache.Servers(*view)) {
    if (view->view.suspended.contains(server->name())) continue;
    const auto read = server->Read(view->view.list);
    if (read.ok() || !IsFailure(read.status())) continue;
    if (auto status = cache.Suspend(server->name()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Caches::State> Caches::Look() {
  if (auto status = view_.Refresh(); !status.ok()) return status;
  const auto view = view_.Load();
  State state{.view = view->view, .as_configured = IsAsConfigured(view->view), .servers = {}};
  for (const CacheKind kind : {CacheKind::kObjects, CacheKind::kMappings}) {
    for (const auto& server : CacheOf(kind).Servers(*view)) {
      ServerState& one = state.servers.emplace_back();
      one.name = server->name();
      one.kind = kind;
      if (const auto suspended = state.view.suspended.find(one.name);
          suspended != state.view.suspended.end()) {
        one.suspended = true;
        one.suspended_ms = suspended->second;
      }
      const auto guard = server->server().ReadGuard();
      one.problem = guard.status();
      if (guard.ok() && *guard) one.guard = ParseGuard(**guard);
    }
  }
  return state;
}

}  // namespace kvstore::cached
