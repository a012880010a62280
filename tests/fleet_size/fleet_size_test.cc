#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordination/zookeeper.h"
#include "shardmap/diff.h"
#include "shardmap/shard_map.h"
#include "shardmap/watcher.h"
#include "shardmap/zookeeper_source.h"
#include "shardops/maps.h"
#include "shardops/status.h"
#include "tests/fleet_size/fake_hosts.h"
#include "tests/fleet_size/settings.h"
#include "tests/fleet_size/watching_clients.h"
#include "tests/fleet_size/zookeeper_ensemble.h"
#include "tests/shardmap/large_maps.h"
#include "tests/support/status_matchers.h"

/// A simulated fleet of any size: real ZooKeepers, real sessions, real maps, and servers that only pretend.
/// The bars are those of a fleet at its full size; they are checked there only (./dev fleet-size), as the
/// tests of every day run beside others. Figures are printed in both.
namespace kvstore::testing::fleet_size {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr char kNode[] = "/kvstore/shards/id";

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

template <typename... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  std::printf("%s\n", fmt::format(format, std::forward<Args>(args)...).c_str());
  std::fflush(stdout);
}

/// Checks a bar of the full size.
void ExpectBelow(const Size& size, double figure, double bar) {
  if (!size.full) return;
  EXPECT_LT(figure, bar);
}

/// Waits until `holds`; returns how long that took, or fails after `most`.
template <typename Holds>
Clock::duration Until(seconds most, const Holds& holds) {
  const auto begin = Clock::now();
  while (!holds()) {
    if (Clock::now() - begin > most) {
      ADD_FAILURE() << "not within " << most.count() << " s";
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return Clock::now() - begin;
}

/// Returns a map of so many ranges over the pairs of these hosts, in no order.
///
/// host  Names a host by its number.
template <typename HostOf>
ShardMap MapOf(size_t count, size_t hosts, const HostOf& host, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<ShardRange> ranges;
  const size_t length = (ShardMap::kMaxShard + 1) / count;
  for (size_t i = 0; i < count; ++i) {
    const size_t pair = random() % (hosts / 2);
    ranges.push_back({static_cast<uint32_t>(i * length), static_cast<uint32_t>((i + 1) * length - 1),
                      host(2 * pair), host(2 * pair + 1)});
  }
  return *ShardMap::Create(std::move(ranges));
}

Host NamedHost(size_t number) { return {.name = fmt::format("mysql-{:04}.db.example.com", number)}; }

/// Raises the limit of open files as far as it may be.
void AllowFiles() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

TEST(FleetSize, ALookUpTakesAsLongWithManyRangesAsWithOne) {
  const Size size = SizeOfRun();
  const ShardMap map = MapOf(size.ranges, size.hosts, &NamedHost, 1);
  std::vector<uint32_t> shards(size_t{1} << 16);
  std::mt19937 random(1);
  for (uint32_t& shard : shards) shard = random() % (ShardMap::kMaxShard + 1);
  double best = 1e9;
  uintptr_t found = 0;
  for (int round = 0; round < 20; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < 10; ++i) {
      for (const uint32_t shard : shards) found += reinterpret_cast<uintptr_t>(map.Find(shard));
    }
    best = std::min(best, Seconds(Clock::now() - begin) * 1e9 / static_cast<double>(10 * shards.size()));
  }
  EXPECT_NE(found, 0u);
  Say("a look-up of random shards among {} ranges: {:.2f} ns", map.ranges().size(), best);
  ExpectBelow(size, best, 3.0);
}

TEST(FleetSize, AThousandMovesArePlannedAtOnce) {
  const Size size = SizeOfRun();
  const ShardMap map = MapOf(size.ranges, size.hosts, &NamedHost, 1);
  const size_t moves = std::min<size_t>(1'000, size.ranges / 2);
  const auto begin = Clock::now();
  std::vector<ShardRange> ranges(map.ranges().begin(), map.ranges().end());
  std::mt19937 random(2);
  for (size_t i = 0; i < moves; ++i) {
    ShardRange& range = ranges[2 * i];
    const size_t pair = random() % (size.hosts / 2);
    range.master = NamedHost(2 * pair);
    range.slave = NamedHost(2 * pair + 1);
  }
  const auto next = ShardMap::Create(std::move(ranges));
  ASSERT_OK(next.status());
  const size_t changes = Diff(map, *next).size();
  const std::string stored = next->ToStored();
  const double took = Seconds(Clock::now() - begin);
  EXPECT_GT(changes, moves / 2);
  Say("moves of {} ranges planned, compared and packed: {:.3f} s; the map is stored in {} KiB", moves, took,
      stored.size() >> 10);
  ExpectBelow(size, took, 1.0);
  // A client parses each map that it receives.
  const auto parse = Clock::now();
  const auto again = ShardMap::Parse(stored);
  ASSERT_OK(again.status());
  Say("a map is read by a client in {:.3f} s", Seconds(Clock::now() - parse));
}

TEST(FleetSize, AllClientsHaveAMapChangeSoonAndComeBackAfterAllZooKeepersWereRestarted) {
  const Size size = SizeOfRun();
  AllowFiles();
  ZooKeeperEnsemble ensemble;
  const ZooKeeperOptions options{.servers = ensemble.servers()};
  const std::vector<ShardMap> maps = {MapOf(size.ranges, size.hosts, &NamedHost, 1),
                                      MapOf(size.ranges, size.hosts, &NamedHost, 2),
                                      MapOf(size.ranges, size.hosts, &NamedHost, 3)};
  ZooKeeper editor(options, nullptr);
  ASSERT_OK(editor.Create(kNode, maps[0].ToStored()));
  const auto written = [&] { return editor.Stat(kNode, /*watch=*/false)->transaction; };
  const int64_t first = written();

  WatchingClients clients(ensemble.ports(), kNode, size.sessions);
  const auto start = Until(seconds(120), [&] { return clients.HowManyHave(first) == size.sessions; });
  Say("{} clients connected and read a map of {} KiB in {:.1f} s", size.sessions,
      maps[0].ToStored().size() >> 10, Seconds(start));

  // One real client among them, which looks up shards all the time.
  ASSERT_OK_AND_ASSIGN(const auto watcher, ShardMapWatcher::Start(OpenZooKeeperSource(options, kNode), {}));
  std::atomic<bool> over = false;
  std::atomic<uint64_t> failed = 0;
  std::thread caller([&] {
    for (uint32_t i = 0; !over; i += 7919) {
      if (watcher->map().Find(i % (ShardMap::kMaxShard + 1) / 64) == nullptr) ++failed;
      if (i % 64 == 0) std::this_thread::yield();
    }
  });

  const auto change = [&](const ShardMap& map, const std::string& what, bool has_bar = true) {
    const std::string text = map.ToStored();
    const uint64_t bytes = clients.counts().bytes_in;
    const auto begin = Clock::now();
    ASSERT_OK(editor.Set(kNode, text, -1));
    const int64_t transaction = written();
    Until(seconds(120), [&] { return clients.HowManyHave(transaction) == size.sessions; });
    Until(seconds(120), [&] { return watcher->map() == map; });
    const auto times = clients.Times();
    const double p50 = Seconds(times[times.size() / 2] - begin);
    const double p99 = Seconds(times[times.size() * 99 / 100] - begin);
    Say("{}, {} KiB, is at {} clients: p50 {:.2f} s, p99 {:.2f} s, all {:.2f} s; {} MiB from ZooKeeper", what,
        text.size() >> 10, size.sessions, p50, p99, Seconds(times.back() - begin),
        (clients.counts().bytes_in - bytes) >> 20);
    if (has_bar) ExpectBelow(size, p99, 5.0);
  };
  change(MapOf(500, size.hosts, &NamedHost, 4), "a map of 500 ranges");
  change(maps[1], fmt::format("a map of {} ranges", size.ranges));
  // kv shards set accepts such a map only unchecked, since its hosts are in many pairs.
  if (size.full) change(FullSizeMap(), "a map of 65536 ranges, each on another pair", /*has_bar=*/false);
  change(MapOf(500, size.hosts, &NamedHost, 5), "a map of 500 ranges");

  // Measures the traffic while nothing changes.
  const auto idle = clients.counts();
  const auto watched = seconds(size.full ? 15 : 2);
  std::this_thread::sleep_for(watched);
  const auto later = clients.counts();
  Say("without a change: {:.0f} KB/s from ZooKeeper, {:.0f} KB/s to it; its servers have {} MiB resident",
      static_cast<double>(later.bytes_in - idle.bytes_in) / 1e3 / Seconds(watched),
      static_cast<double>(later.bytes_out - idle.bytes_out) / 1e3 / Seconds(watched),
      ensemble.ResidentBytes() >> 20);

  // All servers are killed and come back.
  const size_t lost = clients.counts().reconnects;
  ensemble.Stop();
  Until(seconds(30), [&] { return clients.counts().connected == 0; });
  const auto begin = Clock::now();
  ensemble.Start();
  const auto serving = Clock::now() - begin;
  Until(seconds(240), [&] { return clients.counts().connected == size.sessions; });
  const auto back = Clock::now() - begin;
  Say("all ZooKeepers were killed and started: they serve after {:.1f} s, {} clients are back after {:.1f} "
      "s, "
      "{} of them with a new session; {} look-ups failed",
      Seconds(serving), size.sessions, Seconds(back), clients.counts().new_sessions, failed.load());
  EXPECT_GE(clients.counts().reconnects - lost, size.sessions);
  ExpectBelow(size, Seconds(back), 120.0);
  // They watch again.
  absl::Status set = absl::UnavailableError("not tried");
  for (int i = 0; i < 30 && !set.ok(); ++i) set = editor.Set(kNode, maps[2].ToStored(), -1);
  ASSERT_OK(set);
  const int64_t last = written();
  Until(seconds(120), [&] { return clients.HowManyHave(last) == size.sessions; });
  Until(seconds(120), [&] { return watcher->map() == maps[2]; });
  over = true;
  caller.join();
  EXPECT_EQ(failed, 0u);
}

TEST(FleetSize, AllHostsAreInspectedSoon) {
  const Size size = SizeOfRun();
  AllowFiles();
  FakeHosts hosts(size.hosts);
  ZooKeeperEnsemble ensemble;
  ZooKeeper zookeeper({.servers = ensemble.servers()}, nullptr);
  shardops::FleetOperator fleet{.zookeeper = zookeeper, .access = {.admin = {.user = "root"}}};
  std::vector<ShardRange> ranges;
  const size_t length = (ShardMap::kMaxShard + 1) / (size.hosts / 2);
  for (size_t i = 0; i < size.hosts / 2; ++i) {
    ranges.push_back({static_cast<uint32_t>(i * length), static_cast<uint32_t>((i + 1) * length - 1),
                      hosts.host(2 * i), hosts.host(2 * i + 1)});
  }
  ASSERT_OK_AND_ASSIGN(const ShardMap map, ShardMap::Create(std::move(ranges)));
  ASSERT_OK(zookeeper.Create(kNode, map.ToStored()));
  // The first look finds no notes, the second one does.
  for (const char* const turn : {"the first", "the next"}) {
    const auto begin = Clock::now();
    ASSERT_OK_AND_ASSIGN(const auto reports, shardops::InspectFleet(fleet));
    const double took = Seconds(Clock::now() - begin);
    Say("{} inspection of {} hosts: {:.2f} s, {} connections so far", turn, reports.size(), took,
        hosts.connections());
    ASSERT_EQ(reports.size(), size.hosts);
    EXPECT_EQ(reports[0].problems, std::vector<std::string>());
    EXPECT_EQ(hosts.unknown(), "");
    ExpectBelow(size, took, 5.0);
  }
}

}  // namespace
}  // namespace kvstore::testing::fleet_size
