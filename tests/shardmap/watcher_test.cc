#include "shardmap/watcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "coordination/zookeeper.h"
#include "shardmap/weights.h"
#include "shardmap/zookeeper_source.h"
#include "tests/shardmap/large_maps.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore {
namespace {

using testing::Eventually;
using testing::FailsWith;
using testing::FullSizeMap;
using testing::TempDir;
using testing::ZooKeeperServer;

constexpr char kNode[] = "/kvstore/shards/id";

std::string MapOn(const std::string& master, int last = 511) {
  return "[{\"range\":[0," + std::to_string(last) + "],\"master\":\"" + master + "\",\"slave\":\"replica\"}]";
}

std::string MasterOf(const ShardMapWatcher& watcher, uint32_t shard = 0) {
  const ShardRange* range = watcher.map().Find(shard);
  return range == nullptr ? "(none)" : range->master.name;
}

/// Watches a file that the test writes.
class FileWatcher : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    std::ofstream(dir_ / "new") << text;
    std::filesystem::rename(dir_ / "new", dir_ / "map");
  }
  absl::StatusOr<std::unique_ptr<ShardMapWatcher>> Start(ShardSpace space = ShardSpace::kId) {
    return ShardMapWatcher::Start(OpenFileSource(dir_ / "map"), {.cache = dir_ / "cache", .space = space});
  }
  const TempDir dir_;
};

TEST_F(FileWatcher, AnEditComesIntoForce) {
  Write(MapOn("A"));
  std::vector<std::string> seen;
  Mutex mutex;
  ASSERT_OK_AND_ASSIGN(const auto watcher, ShardMapWatcher::Start(OpenFileSource(dir_ / "map"),
                                                                  {.on_update = [&](const ShardMap& map) {
                                                                    const MutexLock lock(mutex);
                                                                    seen.push_back(map.Find(0)->master.name);
                                                                  }}));
  EXPECT_EQ(MasterOf(*watcher), "A");
  const ShardMap& old = watcher->map();
  Write(MapOn("B"));
  EXPECT_TRUE(Eventually([&] { return MasterOf(*watcher) == "B"; }));
  // A reference to a map that was in force stays valid.
  EXPECT_EQ(old.Find(0)->master.name, "A");
  EXPECT_EQ(watcher->stats().updates, 2u);
  EXPECT_TRUE(Eventually([&] {
    const MutexLock lock(mutex);
    return seen == std::vector<std::string>{"A", "B"};
  }));
}

TEST_F(FileWatcher, ABadEditIsRefusedAndTheLastGoodMapStays) {
  Write(MapOn("A"));
  ASSERT_OK_AND_ASSIGN(const auto watcher, Start());
  Write("[{\"range\":[0,511],\"master\":\"B\"}]");
  EXPECT_TRUE(Eventually([&] { return watcher->stats().refused == 1; }));
  EXPECT_EQ(MasterOf(*watcher), "A");
  EXPECT_THAT(watcher->stats().problem,
              FailsWith(absl::StatusCode::kInvalidArgument, "entry 0: slave: is missing"));
  // A watcher that starts now uses the cached map, the last good one.
  ASSERT_OK_AND_ASSIGN(const auto second, Start());
  EXPECT_EQ(MasterOf(*second), "A");
  EXPECT_TRUE(second->stats().from_cache);
  Write(MapOn("C"));
  EXPECT_TRUE(Eventually([&] { return MasterOf(*watcher) == "C" && MasterOf(*second) == "C"; }));
  EXPECT_OK(watcher->stats().problem);
  EXPECT_FALSE(second->stats().from_cache);
}

TEST_F(FileWatcher, WithoutAMapThereIsNoStart) {
  EXPECT_THAT(Start(), FailsWith(absl::StatusCode::kUnavailable, (dir_ / "map").string()));
  Write("[]");
  EXPECT_THAT(Start(), FailsWith(absl::StatusCode::kInvalidArgument, "has no entries"));
  std::ofstream(dir_ / "cache") << "damaged";
  EXPECT_THAT(Start(), FailsWith(absl::StatusCode::kInvalidArgument, "has no entries"));
}

TEST_F(FileWatcher, TheNumberOfModShardsNeverChangesAlsoAcrossARestart) {
  Write(MapOn("A", 15));
  {
    ASSERT_OK_AND_ASSIGN(const auto watcher, Start(ShardSpace::kMod));
    Write(MapOn("B", 31));
    // A refusal is counted before its reason can be seen.
    EXPECT_TRUE(Eventually([&] { return !watcher->stats().problem.ok(); }));
    EXPECT_EQ(watcher->stats().refused, 1u);
    EXPECT_THAT(watcher->stats().problem,
                FailsWith(absl::StatusCode::kFailedPrecondition, "32 shards where there are 16"));
    EXPECT_EQ(MasterOf(*watcher), "A");
  }
  ASSERT_OK_AND_ASSIGN(const auto watcher, Start(ShardSpace::kMod));
  EXPECT_EQ(MasterOf(*watcher), "A");
  EXPECT_EQ(watcher->stats().refused, 1u);
}

TEST(ZooKeeperWatcher, FollowsEditsAndSurvivesItsServer) {
  ZooKeeperServer server;
  const TempDir dir;
  const ZooKeeperOptions options{
      .servers = server.address(), .session_timeout_ms = 2000, .call_timeout_ms = 1000};
  ZooKeeper editor(options, nullptr);
  ASSERT_OK(editor.Create(kNode, MapOn("A")));
  const auto start = [&] {
    return ShardMapWatcher::Start(OpenZooKeeperSource(options, kNode), {.cache = dir / "cache"});
  };
  ASSERT_OK_AND_ASSIGN(const auto watcher, start());
  EXPECT_EQ(MasterOf(*watcher), "A");
  ASSERT_OK(editor.Set(kNode, MapOn("B"), -1));
  EXPECT_TRUE(Eventually([&] { return MasterOf(*watcher) == "B"; }));
  ASSERT_OK(editor.Set(kNode, "nonsense", -1));
  EXPECT_TRUE(Eventually([&] { return watcher->stats().refused == 1; }));
  EXPECT_EQ(MasterOf(*watcher), "B");

  // While ZooKeeper is down the map stays in force, also for a watcher that starts meanwhile.
  server.Stop();
  EXPECT_TRUE(Eventually([&] { return watcher->stats().failures > 0; }));
  EXPECT_EQ(MasterOf(*watcher), "B");
  {
    ASSERT_OK_AND_ASSIGN(const auto second, start());
    EXPECT_EQ(MasterOf(*second), "B");
    EXPECT_TRUE(second->stats().from_cache);
  }
  server.Start();
  absl::Status status = absl::UnavailableError("not tried");
  for (int i = 0; i < 50 && !status.ok(); ++i) status = editor.Set(kNode, MapOn("C"), -1);
  ASSERT_OK(status);
  EXPECT_TRUE(Eventually([&] { return MasterOf(*watcher) == "C"; }));
}

TEST(ZooKeeperWatcher, AMapOfFullSizeComesIntoForceAndIsTheCopyToStartWith) {
  ZooKeeperServer server;
  const TempDir dir;
  const ZooKeeperOptions options{
      .servers = server.address(), .session_timeout_ms = 2000, .call_timeout_ms = 1000};
  ZooKeeper editor(options, nullptr);
  ASSERT_OK(editor.Create(kNode, MapOn("A")));
  const auto start = [&] {
    return ShardMapWatcher::Start(OpenZooKeeperSource(options, kNode), {.cache = dir / "cache"});
  };
  ASSERT_OK_AND_ASSIGN(const auto watcher, start());
  const ShardMap full = FullSizeMap();
  ASSERT_OK(editor.Set(kNode, full.ToStored(), -1));
  EXPECT_TRUE(Eventually([&] { return watcher->map() == full; }));
  const auto copied = [&] {
    std::ifstream file(dir / "cache");
    return std::string((std::istreambuf_iterator<char>(file)), {}) == full.ToStored();
  };
  EXPECT_TRUE(Eventually(copied));
  server.Stop();
  ASSERT_OK_AND_ASSIGN(const auto second, start());
  EXPECT_TRUE(second->stats().from_cache);
  EXPECT_TRUE(second->map() == full);
}

TEST(ZooKeeperSource, ReadsTheDataOnlyIfItHasChanged) {
  const ZooKeeperServer server;
  const ZooKeeperOptions options{.servers = server.address()};
  ZooKeeper editor(options, nullptr);
  const auto source = OpenZooKeeperSource(options, kNode);
  EXPECT_THAT(source->Read(), FailsWith(absl::StatusCode::kNotFound, kNode));
  ASSERT_OK(editor.Create(kNode, "one"));
  EXPECT_EQ(*source->Read(), "one");
  EXPECT_EQ(*source->Read(), std::nullopt);
  ASSERT_OK(editor.Set(kNode, "two", -1));
  EXPECT_EQ(*source->Read(), "two");
  EXPECT_EQ(*source->Read(), std::nullopt);
  // A node that was deleted and made again begins its version anew.
  ASSERT_OK(editor.Delete(kNode));
  EXPECT_THAT(source->Read(), FailsWith(absl::StatusCode::kNotFound, kNode));
  ASSERT_OK(editor.Create(kNode, "three"));
  ASSERT_OK(editor.Set(kNode, "four", -1));
  EXPECT_EQ(*source->Read(), "four");
}

TEST(ZooKeeperSource, ThoseOfOneProcessShareASession) {
  const ZooKeeperServer server;
  const ZooKeeperOptions options{.servers = server.address()};
  const std::string mod_node = "/kvstore/shards/mod";
  {
    ZooKeeper editor(options, nullptr);
    ASSERT_OK(editor.Create(kNode, MapOn("A")));
    ASSERT_OK(editor.Create(mod_node, MapOn("A", 15)));
  }
  const std::string weights_node = "/kvstore/shards/weights";
  auto sources = OpenZooKeeperSources(options, {kNode, mod_node, weights_node});
  const WeightsWatcher weights(std::move(sources[2]), {});
  ASSERT_OK_AND_ASSIGN(auto id, ShardMapWatcher::Start(std::move(sources[0]), {}));
  ASSERT_OK_AND_ASSIGN(const auto mod,
                       ShardMapWatcher::Start(std::move(sources[1]), {.space = ShardSpace::kMod}));
  EXPECT_TRUE(Eventually([&] { return server.Sessions() == 1; }));
  ZooKeeper editor(options, nullptr);
  ASSERT_OK(editor.Set(kNode, MapOn("B"), -1));
  EXPECT_TRUE(Eventually([&] { return MasterOf(*id) == "B"; }));
  EXPECT_EQ(MasterOf(*mod), "A");
  const ShardWeights half = {{.first = 0, .last = 255, .weight = 0}};
  ASSERT_OK(editor.Create(weights_node, ToJson(half)));
  EXPECT_TRUE(Eventually([&] { return *weights.weights() == half; }));
  // The other one goes on when one of them ends.
  id.reset();
  ASSERT_OK(editor.Set(mod_node, MapOn("C", 15), -1));
  EXPECT_TRUE(Eventually([&] { return MasterOf(*mod) == "C"; }));
}

TEST(ZooKeeperWatcher, AMapThatWasRefusedIsStillTheProblemAfterAnOutage) {
  ZooKeeperServer server;
  const ZooKeeperOptions options{
      .servers = server.address(), .session_timeout_ms = 2000, .call_timeout_ms = 1000};
  ZooKeeper editor(options, nullptr);
  ASSERT_OK(editor.Create(kNode, MapOn("A")));
  ASSERT_OK_AND_ASSIGN(const auto watcher, ShardMapWatcher::Start(OpenZooKeeperSource(options, kNode), {}));
  ASSERT_OK(editor.Set(kNode, "nonsense", -1));
  EXPECT_TRUE(Eventually([&] { return absl::IsInvalidArgument(watcher->stats().problem); }));
  server.Stop();
  EXPECT_TRUE(Eventually([&] { return absl::IsUnavailable(watcher->stats().problem); }));
  server.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsInvalidArgument(watcher->stats().problem); }));
  EXPECT_EQ(watcher->stats().refused, 1u);
  EXPECT_EQ(MasterOf(*watcher), "A");
}

TEST(ZooKeeperWatcher, ArmsItsWatchAgainWhenItsSessionHasExpired) {
  const ZooKeeperServer server;
  testing::TcpProxy proxy(server.port());
  ASSERT_OK(ZooKeeper({.servers = server.address()}, nullptr).Create(kNode, MapOn("A")));
  const ZooKeeperOptions options{
      .servers = proxy.address(), .session_timeout_ms = 800, .call_timeout_ms = 1000};
  ASSERT_OK_AND_ASSIGN(const auto watcher, ShardMapWatcher::Start(OpenZooKeeperSource(options, kNode), {}));
  proxy.Cut();
  EXPECT_TRUE(Eventually([&] { return server.Sessions() == 0; }));
  ASSERT_OK(ZooKeeper({.servers = server.address()}, nullptr).Set(kNode, MapOn("B"), -1));
  proxy.Mend();
  EXPECT_TRUE(Eventually([&] { return MasterOf(*watcher) == "B"; }));
  // The watch reports this, long before the poll interval would end.
  ASSERT_OK(ZooKeeper({.servers = server.address()}, nullptr).Set(kNode, MapOn("C"), -1));
  EXPECT_TRUE(Eventually([&] { return MasterOf(*watcher) == "C"; }));
}

}  // namespace
}  // namespace kvstore
