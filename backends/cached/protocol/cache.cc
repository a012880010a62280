#include "backends/cached/protocol/cache.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "backend_api/outcome.h"
#include "base/clock.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/in_doubt.h"

namespace kvstore::cached {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// How often the servers are looked after, and samples are compared.
constexpr milliseconds kPause{500};
/// How long a read waits for another one to fill the cache, and the first and the longest pause between
/// looks.
constexpr milliseconds kFillPatience{200};
constexpr microseconds kFirstLook{250};
constexpr microseconds kLongestLook{20'000};
/// A suspended server is used again after so many leases at the earliest, so that one that only some can
/// reach costs those little.
constexpr int kLeasesSuspended = 3;
/// How many samples wait to be compared at most, and when they are.
constexpr size_t kMaxSamples = 256;
constexpr int kChecksAtOnce = 16;
constexpr std::chrono::seconds kCheckTime{1};
constexpr std::chrono::seconds kFirstCheck{1};
constexpr std::chrono::seconds kSecondCheck{60};

/// How often something is tried again that others come in between of, and the pause where a list of servers
/// comes into force.
constexpr int kRounds = 20;
constexpr milliseconds kListPause{20};
/// What is sent to a server at once, to fill it.
constexpr size_t kFillBytes = size_t{1} << 20;
/// How many marks are kept in mind that are to be removed, or set again.
constexpr size_t kMaxMarks = 10'000;
constexpr ptrdiff_t kMarksAtOnce = 100;
constexpr std::chrono::seconds kDoubtPause{60};
/// How many datasets that have left a guard names.
constexpr size_t kMaxLeft = 64;

/// How long a write may take. An unmarked one may begin a lease after its server is used again, and the
/// backend gets as long again for what a process has sent that has died: together that is less than the
/// quarantine.
std::chrono::nanoseconds LongestWrite(const View& view) {
  return (std::chrono::seconds(view.quarantine_s) - milliseconds(view.lease_ms)) / 3;
}

std::string KeyPrefix(const Guard& guard) { return fmt::format("kv:{:x}:", guard.number); }

std::string KeyText(const Guard& guard, const Cache::Key& key) {
  const auto left = guard.left.find(key.incarnation);
  const uint64_t epoch = left == guard.left.end() ? 0 : left->second.epoch;
  return fmt::format("{}{:x}:{:x}:{:x}", KeyPrefix(guard), key.incarnation, epoch, key.id);
}

bool Trusts(const Guard& guard, uint64_t incarnation) {
  if (!guard.trusted) return false;
  const auto left = guard.left.find(incarnation);
  return left == guard.left.end() || left->second.trusted;
}

}  // namespace

std::string_view Name(CacheKind kind) { return kind == CacheKind::kObjects ? "objects" : "mappings"; }

Cache::Cache(CacheKind kind, const CacheOptions& options, ViewKeeper& view, OpenServer open)
    : kind_(kind), options_(options), view_(view), open_(open), thread_([this] { Run(); }) {}

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
    server = std::make_shared<GuardedServer>(open_({.address = address,
                                                    .guard = GuardKey(view),
                                                    .timeout = milliseconds(options_.timeout_ms),
                                                    .connections = options_.connections,
                                                    .user = options_.redis_login.user,
                                                    .password = options_.redis_login.password}));
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
    names.push_back(KeyText(known->guard, keys[place]));
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

// ---- writes ----

absl::StatusOr<std::shared_ptr<const KnownView>> Cache::ViewThatHolds() {
  auto view = view_.Load();
  for (int round = 0; view == nullptr || !view->Holds(); ++round) {
    if (auto status = CheckCall(); !status.ok()) return status;
    if (round == kRounds) return absl::UnavailableError("ZooKeeper takes longer to answer than lease_ms");
    if (auto status = view_.Refresh(); !status.ok()) return status;
    view = view_.Load();
  }
  return view;
}

absl::StatusOr<bool> Cache::AwaitSuspension(const std::string& server) {
  for (;;) {
    const auto view = ViewThatHolds();
    if (!view.ok()) return view.status();
    const auto since = (*view)->suspended_since.find(server);
    if (since == (*view)->suspended_since.end()) return false;
    const auto left = since->second + milliseconds((*view)->view.lease_ms) - BootClock::now();
    if (left <= left.zero()) return true;
    if (auto status = CheckCall(); !status.ok()) return status;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, milliseconds(20)));
  }
}

absl::Status Cache::Suspend(const std::string& server) {
  bool first = false;
  auto status = view_.Change([&](View& view) {
    first = view.suspended.emplace(server, WallClockMs()).second;
    return first;
  });
  if (!status.ok()) return status;
  if (first) spdlog::warn("caches: {} cannot be reached by this process; nobody uses it for a while", server);
  return AwaitSuspension(server).status();
}

absl::StatusOr<Cache::MarkedKey> Cache::MarkKey(const Key& key) {
  const auto refuse = [](const absl::Status& why) -> absl::Status {
    if (auto late = CheckCall(); !late.ok()) return late;
    return absl::UnavailableError(
        fmt::format("caches: nothing was written, because no cache may be left with what is there now: {}",
                    std::string(why.message())));
  };
  absl::Status failed;
  for (int round = 0; round < kRounds; ++round) {
    if (auto status = CheckCall(); !status.ok()) return status;
    auto view = view_.Load();
    // A process that knows of no servers would not notice that there are some by now.
    if (view == nullptr || (RingOf(*view).empty() && !view->Holds())) {
      auto holds = ViewThatHolds();
      if (!holds.ok()) return refuse(holds.status());
      view = *std::move(holds);
    }
    MarkedKey marked{.longest = LongestWrite(view->view), .since = BootClock::now(), .mark = {}};
    if (RingOf(*view).empty()) return marked;
    const auto server = ServerOf(*view, key);
    if (view->view.suspended.contains(server->name())) {
      const auto suspended = AwaitSuspension(server->name());
      marked.since = BootClock::now();
      if (suspended.ok() && *suspended) return marked;
      if (suspended.ok()) continue;
      if (auto status = CheckCall(); !status.ok()) return status;
      // ZooKeeper cannot be reached, so the server may be in use by now. If it can be reached, it is marked.
    }
    auto known = server->known();
    failed = absl::OkStatus();
    if (known == nullptr || known->guard.list < view->view.list) {
      // A guard is made for the list in force only.
      const auto holds = ViewThatHolds();
      if (!holds.ok()) return refuse(holds.status());
      if ((*holds)->view.list != view->view.list) continue;
      auto read = server->Read(view->view.list);
      if (read.ok()) known = *std::move(read);
      failed = read.status();
    }
    if (absl::IsAborted(failed) || (failed.ok() && known->guard.list > view->view.list)) {
      if (auto status = view_.Refresh(); !status.ok()) return refuse(status);
      failed =
          absl::UnavailableError(fmt::format("{} has been told of a later list of servers than ZooKeeper "
                                             "has. If that was restored: kv cache use",
                                             server->name()));
      if (round > 0) std::this_thread::sleep_for(kListPause);
      continue;
    }
    if (failed.ok()) {
      const std::string text = KeyText(known->guard, key);
      marked.since = BootClock::now();
      // A number for each attempt, so that what is left of one has nothing to do with the next.
      const uint64_t mark = RandomNumber();
      const auto answer = server->server().Mark(text, mark);
      if (answer.ok()) {
        Mark made{.server = server, .key = text, .number = mark, .version = answer->version};
        server->Note(answer->guard);
        const auto now = server->known();
        // What has changed in the guard may be of no concern to this key.
        if (now != nullptr && now->text == answer->guard && now->guard.list == known->guard.list &&
            KeyText(now->guard, key) == text) {
          server->Succeeded();
          marked.mark = std::move(made);
          return marked;
        }
        // The mark is where nobody looks any more.
        Unmark(std::move(made));
        failed = absl::UnavailableError(server->name() + ": others change its guard without end");
        continue;
      }
      failed = answer.status();
    }
    ++stats_.failures;
    // If all connections are in use it is not the server that fails.
    if (absl::IsResourceExhausted(failed)) continue;
    server->Failed(failed);
    if (auto status = Suspend(server->name()); !status.ok()) {
      return refuse(absl::UnavailableError(
          fmt::format("{}; {}", std::string(failed.message()), std::string(status.message()))));
    }
  }
  return refuse(failed);
}

void Cache::Unmark(Mark mark) {
  const auto status = mark.server->server().Unmark(mark.key, mark.number, mark.version);
  if (status.ok()) return;
  ++stats_.failures;
  mark.server->Failed(status);
  const MutexLock lock(mutex_);
  if (unmarks_.size() < kMaxMarks) unmarks_.push_back(std::move(mark));
}

void Cache::Doubt(const Key& key, std::optional<Mark> mark) {
  ++stats_.in_doubt;
  const MutexLock lock(mutex_);
  if (doubts_.size() >= kMaxMarks) {
    spdlog::error(
        "caches: more than {} writes are in doubt: what was there before ID {} was written may be cached",
        kMaxMarks, key.id);
    return;
  }
  const auto now = BootClock::now();
  doubts_.push_back(
      {.key = key,
       .mark = mark ? *std::move(mark) : Mark{.server = nullptr, .key = {}, .number = RandomNumber()},
       .due = now,
       .until = now + std::chrono::seconds(kMarkSeconds)});
}

absl::Status Cache::Write(const Key& key, const std::function<absl::Status()>& write) {
  for (;;) {
    auto marked = MarkKey(key);
    if (!marked.ok()) return marked.status();
    const auto left = marked->since + marked->longest - BootClock::now();
    if (left < marked->longest / 2) {
      // This process was stopped for a while.
      if (marked->mark) Unmark(*std::move(marked->mark));
      continue;
    }
    ++(marked->mark ? stats_.marks : stats_.unmarked);
    absl::Status status;
    {
      // What takes longer may still be under way when a quarantine ends.
      const CallScope scope(left);
      status = write();
    }
    if (!status.ok() && IsInDoubt(status)) {
      // It may happen at any time yet. The mark stays until it cannot any more.
      Doubt(key, std::move(marked->mark));
      return status;
    }
    if (marked->mark) Unmark(*std::move(marked->mark));
    if (!status.ok() || BootClock::now() < marked->since + marked->longest) return status;
    // It has taken longer than it may, so what was there before may be cached by now, under another guard.
    auto again = MarkKey(key);
    if (!again.ok()) {
      Doubt(key, std::nullopt);
      return MarkInDoubt(absl::UnavailableError(
          "caches: it was written, but took so long that what was there before may be cached for a moment"));
    }
    if (again->mark) Unmark(*std::move(again->mark));
    return status;
  }
}

void Cache::LookAfterMarks(const KnownView& view) {
  // Some at a time, since servers are to be looked after, too, and this may be about to end. First those that
  // are needed.
  std::vector<Doubted> doubts;
  std::vector<Mark> unmarks;
  const auto now = BootClock::now();
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    std::erase_if(doubts_, [&](const Doubted& one) { return one.until < now; });
    const auto due =
        std::partition(doubts_.begin(), doubts_.end(), [&](const Doubted& one) { return one.due > now; });
    const auto few = std::min<ptrdiff_t>(kMarksAtOnce, doubts_.end() - due);
    std::move(doubts_.end() - few, doubts_.end(), std::back_inserter(doubts));
    doubts_.erase(doubts_.end() - few, doubts_.end());
    const auto some = std::min<ptrdiff_t>(kMarksAtOnce, std::ssize(unmarks_));
    std::move(unmarks_.end() - some, unmarks_.end(), std::back_inserter(unmarks));
    unmarks_.erase(unmarks_.end() - some, unmarks_.end());
  }
  for (Doubted& doubt : doubts) {
    doubt.due = now + std::chrono::seconds(1);
    if (!RingOf(view).empty()) {
      const auto server = ServerOf(view, doubt.key);
      const auto known = server->known();
      if (known != nullptr && !server->resting()) {
        const std::string text = KeyText(known->guard, doubt.key);
        const auto marked = server->server().Mark(text, doubt.mark.number);
        server->Failed(marked.status());
        // Again now and then: a server that makes room may have forgotten it.
        if (marked.ok()) doubt.due = now + kDoubtPause;
      }
    }
    const MutexLock lock(mutex_);
    doubts_.push_back(std::move(doubt));
  }
  const auto servers = Servers(view);
  for (Mark& mark : unmarks) {
    const auto known = mark.server->known();
    const bool there = std::find(servers.begin(), servers.end(), mark.server) != servers.end();
    // Nobody looks where a server is not used any more, or has another guard.
    if (!there || (known != nullptr && !mark.key.starts_with(KeyPrefix(known->guard)))) continue;
    if (mark.server->resting()) {
      const MutexLock lock(mutex_);
      unmarks_.insert(unmarks_.begin(), std::move(mark));
    } else {
      Unmark(std::move(mark));
    }
  }
}

// ---- what is done with all servers ----

absl::Status Cache::ChangeAll(const std::function<void(Guard&)>& change) {
  for (int round = 0; round < kRounds; ++round) {
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

// ---- the thread ----

void Cache::LookAfter(const KnownView& view, GuardedServer& server) {
  const uint64_t list = view.view.list;
  if (const auto suspended = view.suspended_since.find(server.name());
      suspended != view.suspended_since.end()) {
    server.quarantined_since.reset();
    const auto lease = milliseconds(view.view.lease_ms);
    if (!view.Holds() || BootClock::now() < suspended->second + lease * kLeasesSuspended) return;
    // First it is worth nothing, then it is in use.
    const auto renewed = server.Change(list, [&](Guard& guard) {
      Renew(guard, list);
      return true;
    });
    if (!renewed.ok()) return;
    const uint64_t when = view.view.suspended.at(server.name());
    const auto status = view_.Change([&](View& now) {
      const auto still = now.suspended.find(server.name());
      if (still == now.suspended.end() || still->second != when) return false;
      now.suspended.erase(still);
      return true;
    });
    if (status.ok()) spdlog::info("caches: {} answers and is used again", server.name());
    return;
  }
  // A guard is made for the list in force only.
  const auto known = view.Holds() ? server.Read(list) : absl::CancelledError();
  if (!known.ok()) {
    if (!absl::IsCancelled(known.status())) server.Failed(known.status());
    server.quarantined_since.reset();
    return;
  }
  server.Succeeded();
  const Guard& guard = (*known)->guard;
  const bool trusted = guard.trusted && std::all_of(guard.left.begin(), guard.left.end(),
                                                    [](const auto& left) { return left.second.trusted; });
  if (trusted || view.view.changing != 0 || !view.Holds() || guard.list != list) {
    server.quarantined_since.reset();
    return;
  }
  if (!server.quarantined_since || server.quarantined_guard != (*known)->text) {
    server.quarantined_since = BootClock::now();
    server.quarantined_guard = (*known)->text;
    return;
  }
  if (BootClock::now() < *server.quarantined_since + std::chrono::seconds(view.view.quarantine_s)) return;
  const auto status = server.Change(list, [&](Guard& now) {
    if (now != guard) return false;
    now.trusted = true;
    for (auto& [incarnation, dataset] : now.left) dataset.trusted = true;
    return true;
  });
  if (status.ok()) spdlog::info("caches: the quarantine of {} is over", server.name());
}

void Cache::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    lock.Unlock();
    if (const auto view = view_.Load(); view != nullptr) {
      for (const auto& server : Servers(*view)) LookAfter(*view, *server);
      LookAfterMarks(*view);
    }
    CheckSamples();
    lock.Lock();
    const auto next = std::chrono::steady_clock::now() + kPause;
    while (!stopping_) {
      if (lock.WaitUntil(changed_, next)) break;
    }
  }
}

void Cache::Check(const Key& key, char part, Peek peek) {
  const MutexLock lock(mutex_);
  // The room limits how many writes are sampled: each has its place for a minute.
  if (samples_.size() >= kMaxSamples) return;
  samples_.push_back({.key = key,
                      .part = part,
                      .peek = std::move(peek),
                      .due = std::chrono::steady_clock::now() + kFirstCheck,
                      .again = true});
}

void Cache::CheckSamples() {
  // A few at a time: the servers are to be looked after, too, and this may be about to end.
  for (int i = 0; i < kChecksAtOnce; ++i) {
    Sample sample;
    {
      const MutexLock lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      const auto due =
          std::find_if(samples_.begin(), samples_.end(), [&](const Sample& one) { return one.due <= now; });
      if (stopping_ || due == samples_.end()) return;
      sample = std::move(*due);
      samples_.erase(due);
    }
    {
      const CallScope scope(kCheckTime);
      Compare(sample);
    }
    if (!std::exchange(sample.again, false)) continue;
    sample.due += kSecondCheck - kFirstCheck;
    const MutexLock lock(mutex_);
    samples_.push_back(std::move(sample));
  }
}

void Cache::Compare(const Sample& sample) {
  const auto view = view_.Load();
  if (view == nullptr || view->view.changing != 0 || RingOf(*view).empty() || !view->Holds()) return;
  const auto server = ServerOf(*view, sample.key);
  const auto look = [&]() -> std::optional<std::string> {
    std::vector<Found> found(1);
    FindOn(*view, server, {&sample.key, 1}, {0}, sample.part, /*lease=*/false, found);
    return found.front().value;
  };
  const auto cached = look();
  if (!cached) return;
  const auto stored = sample.peek();
  if (!stored.ok()) return;
  ++stats_.checked;
  if (*stored == cached) return;
  // It may have been written to since. If so, the cache has another value by now, or none.
  if (look() != cached) return;
  const auto later = sample.peek();
  if (!later.ok() || *later != *stored) return;
  ++stats_.inconsistent;
  spdlog::error("caches: {} has for ID {} what the backend does not have any more; it is removed",
                server->name(), sample.key.id);
  if (const auto known = server->known()) {
    server->server().Forget(KeyText(known->guard, sample.key)).IgnoreError();
  }
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
  count("kvstore_cache_unmarked_total", "Writes without a mark, because the cache server is suspended.",
        stats_.unmarked);
  count("kvstore_cache_in_doubt_total", "Writes whose mark stays, because they may happen yet.",
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
               !suspended && known != nullptr && known->guard.trusted ? 1 : 0);
    sink.Gauge("kvstore_cache_server_connections", "Connections to this cache server.", of,
               server->server().connections());
  }
}

}  // namespace kvstore::cached
