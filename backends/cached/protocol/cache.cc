#include "backends/cached/protocol/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kvstore_api/call_scope.h"

/// Reads, what concerns all servers, and metrics; cache_writes.cc and cache_upkeep.cc have the rest.
namespace kvstore::cached {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How long a read waits for another one to fill the cache, and the first and the longest pause between
/// looks.
constexpr milliseconds kFillPatience{200};
constexpr microseconds kFirstLook{250};
constexpr microseconds kLongestLook{20'000};
/// About how many bytes are sent to a server at once, to fill it.
constexpr size_t kFillBytes = size_t{1} << 20;
/// How often it is tried to reach all servers while their list changes, and the pause in between.
constexpr int kListRounds = 20;
constexpr milliseconds kListPause{20};
/// How many datasets that have left a guard names.
constexpr size_t kMaxLeft = 64;

}  // namespace

std::string_view Name(CacheKind kind) { return kind == CacheKind::kObjects ? "objects" : "mappings"; }

Cache::Cache(CacheKind kind, const CacheOptions& options, ViewKeeper& view, OpenServer open)
    : kind_(kind), options_(options), view_(view), open_(std::move(open)), thread_([this] { Run(); }) {}

Cache::~Cache() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

// ---- which servers there are ----

const Ring& Cache::RingOf(const KnownView& view) const {
  return kind_ == CacheKind::kObjects ? view.memcached : view.redis;
}

const std::vector<std::string>& Cache::AddressesOf(const View& view) const {
  return kind_ == CacheKind::kObjects ? view.memcached : view.redis;
}

std::shared_ptr<GuardedServer> Cache::ServerAt(const View& view, const std::string& address) {
  const MutexLock lock(servers_mutex_);
  auto& server = servers_[{view.id, address}];
  if (server == nullptr) {
    server = std::make_shared<GuardedServer>(open_(address, GuardKey(view)));
  }
  return server;
}

std::shared_ptr<GuardedServer> Cache::ServerOf(const KnownView& view, const Key& key) {
  const size_t place = RingOf(view).Find(RingHash(key.incarnation, key.id));
  return ServerAt(view.view, AddressesOf(view.view)[place]);
}

std::vector<std::shared_ptr<GuardedServer>> Cache::Servers(const KnownView& view) {
  std::vector<std::shared_ptr<GuardedServer>> servers;
  for (const std::string& address : AddressesOf(view.view)) servers.push_back(ServerAt(view.view, address));
  return servers;
}

// ---- reads ----

std::vector<size_t> Cache::FindOn(const KnownView& view, const std::shared_ptr<GuardedServer>& server,
                                  std::span<const Key> keys, const std::vector<size_t>& places, char part,
                                  bool lease, std::vector<Found>& found) {
  const auto known = server->known();
  const bool usable = known != nullptr && known->guard.list == view.view.list && !server->resting() &&
                      !view.view.suspended.contains(server->name());
  std::vector<size_t> asked;
  std::vector<std::string> names;
  std::vector<Server::Key> looks;
  for (const size_t place : places) {
    if (!usable || !Trusts(known->guard, keys[place].incarnation)) continue;
    asked.push_back(place);
    names.push_back(KeyName(known->guard, keys[place].incarnation, keys[place].id));
  }
  stats_.bypasses += places.size() - asked.size();
  if (asked.empty()) return {};
  for (const std::string& name : names) looks.push_back({name, part});
  auto looked = server->server().Look(looks, lease);
  if (!looked.ok()) {
    server->Failed(looked.status());
    ++stats_.failures;
    stats_.bypasses += asked.size();
    return {};
  }
  server->Succeeded();
  if (looked->guard != known->text) {
    server->Note(looked->guard);
    stats_.bypasses += asked.size();
    return {};
  }
  // Whoever has suspended the server, or makes another list, waits as long as this may hold.
  const bool holds = view.Holds();
  std::vector<size_t> taken;
  for (size_t i = 0; i < asked.size(); ++i) {
    Looked& one = looked->keys[i];
    switch (one.kind) {
      case Looked::Kind::kHit:
        if (lease) ++(holds ? stats_.hits : stats_.bypasses);
        if (holds) found[asked[i]].value = std::move(one.value);
        break;
      case Looked::Kind::kLeased:
        found[asked[i]].lease =
            Found::Lease{.server = server, .key = std::move(names[i]), .part = part, .number = one.lease};
        break;
      case Looked::Kind::kTaken:
        taken.push_back(asked[i]);
        break;
      case Looked::Kind::kMarked:
        ++stats_.marked;
        break;
      case Looked::Kind::kNothing:
        break;
    }
  }
  return taken;
}

std::vector<Found> Cache::Find(std::span<const Key> keys, char part, bool wait) {
  std::vector<Found> found(keys.size());
  const auto view = view_.Load();
  if (view == nullptr || view->view.changing != 0 || RingOf(*view).empty() || !view->Holds()) {
    stats_.bypasses += keys.size();
    return found;
  }
  std::map<std::shared_ptr<GuardedServer>, std::vector<size_t>> places;
  for (size_t i = 0; i < keys.size(); ++i) places[ServerOf(*view, keys[i])].push_back(i);
  const auto end = std::chrono::steady_clock::now() + kFillPatience;
  for (microseconds pause = kFirstLook; !places.empty(); pause = std::min(pause * 2, kLongestLook)) {
    for (auto server = places.begin(); server != places.end();) {
      auto taken = FindOn(*view, server->first, keys, server->second, part, /*lease=*/true, found);
      if (taken.empty()) {
        server = places.erase(server);
      } else {
        server->second = std::move(taken);
        ++server;
      }
    }
    // Whoever has leases himself must not wait for those of others, who may wait for his.
    const bool has_leases =
        std::any_of(found.begin(), found.end(), [](const Found& one) { return one.lease.has_value(); });
    const bool late = std::chrono::steady_clock::now() >= end || !CheckCall().ok();
    if (places.empty() || !wait || has_leases || late) break;
    if (pause == kFirstLook) ++stats_.waits;
    std::this_thread::sleep_for(pause);
  }
  return found;
}

void Cache::Fill(std::span<const Filling> fillings) {
  std::map<GuardedServer*, std::vector<Server::Filling>> by_server;
  for (const Filling& one : fillings) {
    by_server[one.lease->server.get()].push_back(
        {.key = {one.lease->key, one.lease->part}, .lease = one.lease->number, .value = one.value});
  }
  for (const auto& [server, all] : by_server) {
    if (server->resting()) continue;
    // In pieces, so that what is sent at once is bounded.
    for (size_t begin = 0; begin < all.size();) {
      size_t end = begin;
      for (size_t bytes = 0; end < all.size() && (end == begin || bytes < kFillBytes); ++end) {
        bytes += all[end].value.size();
      }
      const auto status = server->server().Fill(std::span(all).subspan(begin, end - begin), options_.ttl_s);
      if (!status.ok()) {
        // The leases end by themselves.
        server->Failed(status);
        ++stats_.failures;
        break;
      }
      stats_.fills += end - begin;
      begin = end;
    }
  }
}

void Cache::GiveUp(const Found::Lease& lease) {
  // Should this not be possible, the lease ends by itself.
  if (lease.server->resting()) return;
  lease.server->Failed(lease.server->server().Release({lease.key, lease.part}, lease.number));
}

// ---- what is done with all servers ----

absl::Status Cache::ChangeAll(const std::function<void(Guard&)>& change) {
  for (int round = 0; round < kListRounds; ++round) {
    if (auto status = view_.Refresh(); !status.ok()) return status;
    const auto view = view_.Load();
    bool again = false;
    for (const auto& server : Servers(*view)) {
      const auto status = server->Change(view->view.list, [&](Guard& guard) {
        change(guard);
        return true;
      });
      again = again || absl::IsAborted(status) || absl::IsResourceExhausted(status);
      if (!IsFailure(status)) continue;
      server->Failed(status);
      // One that is suspended gets a new guard before it is used again.
      if (auto suspended = Suspend(server->name()); !suspended.ok()) return suspended;
    }
    if (auto status = view_.Refresh(); !status.ok()) return status;
    if (!again && view_.Load()->view.list == view->view.list) return absl::OkStatus();
    if (auto late = CheckCall(); !late.ok()) return late;
    std::this_thread::sleep_for(kListPause);
  }
  return absl::UnavailableError("caches: the list of cache servers changes without end");
}

absl::Status Cache::Leave(uint64_t incarnation) {
  return ChangeAll([&](Guard& guard) {
    if (guard.left.size() >= kMaxLeft && !guard.left.contains(incarnation)) {
      // The guard is read with every key. A new one needs nothing of what was before.
      Renew(guard, guard.list);
      return;
    }
    Guard::Dataset& dataset = guard.left[incarnation];
    ++dataset.epoch;
    dataset.trusted = false;
  });
}

absl::Status Cache::Drop() {
  return ChangeAll([](Guard& guard) { Renew(guard, guard.list); });
}

// ---- metrics ----

void Cache::Describe(MetricsSink& sink) const {
  const MetricsSink::Labels labels = {{"cache", std::string(Name(kind_))}};
  const auto count = [&](std::string_view name, std::string_view help, const std::atomic<uint64_t>& value) {
    sink.Counter(name, help, labels, static_cast<double>(value.load()));
  };
  count("kvstore_cache_hits_total", "Reads that a cache has answered: queries that the backend has not had.",
        stats_.hits);
  count("kvstore_cache_fills_total", "Answers of the backend that were put into a cache.", stats_.fills);
  count("kvstore_cache_waits_total", "Reads that have waited for another one to fill the cache.",
        stats_.waits);
  count("kvstore_cache_marked_total", "Reads left to the backend because a writer had marked the key.",
        stats_.marked);
  count("kvstore_cache_bypasses_total",
        "Reads left to the backend because no cache could be asked or trusted.", stats_.bypasses);
  count("kvstore_cache_marks_total", "Writes that have marked their key in a cache.", stats_.marks);
  count("kvstore_cache_unmarked_total",
        "Writes without a mark: their cache server is suspended, or there is none.", stats_.unmarked);
  count("kvstore_cache_in_doubt_total", "Writes that may happen yet, whose key stays marked.",
        stats_.in_doubt);
  count("kvstore_cache_failures_total", "Calls of cache servers that have failed.", stats_.failures);
  count("kvstore_cache_checked_total", "Cached values that were compared with the backend's.",
        stats_.checked);
  count("kvstore_cache_inconsistent_total", "Cached values that were not the backend's any more.",
        stats_.inconsistent);
  const auto view = view_.Load();
  if (view == nullptr) return;
  for (const std::string& address : AddressesOf(view->view)) {
    std::shared_ptr<GuardedServer> server;
    {
      const MutexLock lock(servers_mutex_);
      const auto found = servers_.find({view->view.id, address});
      if (found == servers_.end()) continue;
      server = found->second;
    }
    const MetricsSink::Labels of = {{"cache", std::string(Name(kind_))}, {"server", address}};
    const auto known = server->known();
    const bool suspended = view->view.suspended.contains(server->name());
    sink.Gauge("kvstore_cache_server_suspended", "1 if nobody uses this cache server.", of,
               suspended ? 1 : 0);
    sink.Gauge("kvstore_cache_server_trusted", "1 if reads may be answered by this cache server.", of,
               !suspended && known != nullptr && known->guard.trusted && known->guard.list == view->view.list
                   ? 1
                   : 0);
    sink.Gauge("kvstore_cache_server_connections", "Connections to this cache server.", of,
               server->server().connections());
  }
}

}  // namespace kvstore::cached
