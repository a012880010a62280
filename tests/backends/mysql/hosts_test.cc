#include <atomic>
#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "idgen/object_id.h"
#include "kvstore_api/call_scope.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/tcp_proxy.h"

/// Hosts that die, hang, are cut off, are busy, and are replaced, under load.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr uint32_t kOfFirst = 0;   // a shard of the first host
constexpr uint32_t kOfSecond = 8;  // and of the second
const DatasetSpec kObjects{.name = "pins", .shape = Shape::kObjects, .type = 1};

/// Returns options with which a host that hangs costs a few seconds, more than a busy one takes.
mysql::MySqlOptions ShortTimeouts() {
  auto options = TestFleet::Options();
  options.pool.read_timeout_s = 4;
  options.pool.connect_timeout_s = 4;
  options.pool.lock_wait_s = 1;
  return options;
}

/// Calls `work` again and again in several threads, until it is stopped.
class Load {
 public:
  Load(int threads, const std::function<void()>& work) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, work] {
        while (!stop_) work();
      });
    }
  }
  ~Load() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Counts calls that succeeded and that failed.
struct Outcomes {
  std::atomic<int> good{0};
  std::atomic<int> bad{0};
  void Add(const absl::Status& status) { ++(status.ok() ? good : bad); }
  /// Waits until so many more calls have succeeded. Returns false if that takes too long.
  bool MoreGood(int count) {
    const int before = good;
    return Eventually([this, before, count] { return good >= before + count; });
  }
};

/// The IDs of an object on each of the two hosts.
struct TwoObjects {
  explicit TwoObjects(ObjectStore& objects)
      : first(*objects.Create(R"({"n":1})", {.shard = kOfFirst})),
        second(*objects.Create(R"({"n":2})", {.shard = kOfSecond})) {}
  const uint64_t first;
  const uint64_t second;
};

TEST(Hosts, ADeadOneFailsItsOwnKeysAndComesBack) {
  Opened dataset(kObjects);
  const TwoObjects ids(*dataset.objects);
  Outcomes first;
  Outcomes second;
  Load on_first(2, [&] { first.Add(dataset.objects->Get(ids.first, {}).status()); });
  Load on_second(2, [&] { second.Add(dataset.objects->Get(ids.second, {}).status()); });
  ASSERT_TRUE(first.MoreGood(50));
  SharedFleet().server(0).Kill();
  EXPECT_TRUE(Eventually([&] { return first.bad > 100; }));
  EXPECT_THAT(dataset.objects->Get(ids.first, {}),
              FailsWith(kUnavailable, "shard db00000 at " + SharedFleet().server(0).address()));
  // A batch fails for the keys of the dead host only.
  const std::vector<uint64_t> both = {ids.first, ids.second};
  const auto batch = dataset.objects->GetMany(both, {});
  EXPECT_THAT(batch[0], FailsWith(kUnavailable, "db00000"));
  EXPECT_OK(batch[1]);
  EXPECT_TRUE(second.MoreGood(50));
  // Objects that name no shard are created on the host that answers.
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, dataset.objects->Create("{}", {}));
    EXPECT_GE(ObjectId::FromValue(id)->shard(), kOfSecond);
  }
  SharedFleet().server(0).Start();
  EXPECT_TRUE(first.MoreGood(50));
  on_first.Stop();
  on_second.Stop();
  EXPECT_EQ(second.bad, 0);
}

TEST(Hosts, WhileOneIsLeftAloneItsCallsFailAtOnce) {
  auto options = TestFleet::Options();
  options.breaker = {.failures = 1, .min_pause_ms = 60'000, .max_pause_ms = 60'000};
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  SharedFleet().server(0).Kill();
  EXPECT_THAT(dataset.objects->Get(ids.first, {}), FailsWith(kUnavailable, ""));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_THAT(dataset.objects->Get(ids.first, {}), FailsWith(kUnavailable, "left alone"));
  }
  SharedFleet().server(0).Start();
  // The host is not tried before the pause is over.
  EXPECT_THAT(dataset.objects->Get(ids.first, {}), FailsWith(kUnavailable, "left alone"));
  EXPECT_OK(dataset.objects->Get(ids.second, {}));
}

TEST(Hosts, OneThatComesBackReadOnlySaysSoToEachCall) {
  auto options = TestFleet::Options();
  options.breaker = {.failures = 1, .min_pause_ms = 5, .max_pause_ms = 60'000};
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  SharedFleet().server(0).Kill();
  EXPECT_THAT(dataset.objects->Get(ids.first, {}), FailsWith(kUnavailable, ""));
  SharedFleet().server(0).Start();
  SharedFleet().server(0).Run("SET GLOBAL read_only = 1");
  const auto told = [&] { return std::string(dataset.objects->Get(ids.first, {}).status().message()); };
  EXPECT_TRUE(Eventually([&] { return told().find("the host is read-only") != std::string::npos; }));
  for (int i = 0; i < 10; ++i) EXPECT_NE(told().find("the host is read-only"), std::string::npos) << told();
  SharedFleet().server(0).Run("SET GLOBAL read_only = 0");
  EXPECT_OK(dataset.objects->Get(ids.first, {}));
}

TEST(Hosts, OneThatIsDownIsToldInTheSameWayEachTime) {
  auto options = TestFleet::Options();
  options.breaker = {.failures = 1, .min_pause_ms = 5, .max_pause_ms = 5};
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  SharedFleet().server(0).Kill();
  const auto told = [&] { return std::string(dataset.objects->Get(ids.first, {}).status().message()); };
  // The first error is that of the open connection. Later errors are those of tries, and the breaker's
  // between them.
  ASSERT_TRUE(Eventually([&] {
    return told().find("left alone") != std::string::npos && told().find("2002") != std::string::npos;
  }));
  const std::string first = told();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(told(), first);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  SharedFleet().server(0).Start();
}

TEST(Hosts, OneThatHangsCostsATimeoutAndThenNothing) {
  auto options = ShortTimeouts();
  options.breaker = {.failures = 2, .min_pause_ms = 60'000, .max_pause_ms = 60'000};
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  SharedFleet().server(0).Pause();
  const absl::Status hung = dataset.objects->Get(ids.first, {}).status();
  EXPECT_TRUE(absl::IsUnavailable(hung) || absl::IsDeadlineExceeded(hung)) << hung;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_THAT(dataset.objects->Get(ids.first, {}), FailsWith(kUnavailable, "left alone"));
  }
  EXPECT_OK(dataset.objects->Get(ids.second, {}));
  SharedFleet().server(0).Resume();
}

TEST(Hosts, OneThatHangsCostsOneTimeoutForAllIdleConnections) {
  auto options = ShortTimeouts();
  options.pool.check_after_ms = 0;
  options.breaker = {.failures = 2, .min_pause_ms = 60'000, .max_pause_ms = 60'000};
  Opened dataset(kObjects, options);
  mysql::Pool& pool = dataset.backend->fleet().PoolOf({"127.0.0.1", SharedFleet().server(0).port()});
  {
    std::vector<mysql::Lease> leases;
    for (int i = 0; i < 4; ++i) {
      ASSERT_OK_AND_ASSIGN(mysql::Lease lease, pool.Acquire());
      leases.push_back(std::move(lease));
    }
  }
  EXPECT_EQ(pool.idle(), 4u);
  const auto begin = CoarseClock::now();
  ASSERT_TRUE(Eventually([&] { return CoarseClock::now() > begin; }));
  SharedFleet().server(0).Pause();
  // The others are closed without a test.
  EXPECT_THAT(pool.Acquire(), FailsWith(kUnavailable, "left alone"));
  EXPECT_EQ(pool.size(), 0u);
  SharedFleet().server(0).Resume();
}

TEST(Hosts, ConnectionsThatAFirewallHasForgottenFailNoCall) {
  auto options = ShortTimeouts();
  options.pool.check_after_ms = 0;
  options.breaker = {.failures = 2, .min_pause_ms = 60'000, .max_pause_ms = 60'000};
  Opened dataset(kObjects, options);
  TcpProxy proxy(SharedFleet().server(0).port());
  mysql::Pool& pool = dataset.backend->fleet().PoolOf({"127.0.0.1", proxy.port()});
  {
    std::vector<mysql::Lease> leases;
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK_AND_ASSIGN(mysql::Lease lease, pool.Acquire());
      leases.push_back(std::move(lease));
    }
  }
  const auto begin = CoarseClock::now();
  ASSERT_TRUE(Eventually([&] { return CoarseClock::now() > begin; }));
  proxy.Forget();
  EXPECT_OK(pool.Acquire());
  EXPECT_EQ(pool.size(), 1u);
}

TEST(Hosts, ADeadlineReachesEveryHostOfABatch) {
  Opened dataset(kObjects, ShortTimeouts());
  const TwoObjects ids(*dataset.objects);
  const std::vector<uint64_t> both = {ids.first, ids.second};
  const CallScope scope(std::chrono::milliseconds(0));
  EXPECT_THAT(dataset.objects->Get(ids.first, {}), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  for (const auto& object : dataset.objects->GetMany(both, {})) {
    EXPECT_THAT(object, FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  }
}

TEST(Hosts, AHungWriteSaysThatItMayHaveHappened) {
  Opened dataset(kObjects, ShortTimeouts());
  const TwoObjects ids(*dataset.objects);
  SharedFleet().server(0).Pause();
  if (OnMySql()) {
    // A create is a transaction there, which hangs at its begin.
    EXPECT_THAT(dataset.objects->Create("{}", {.shard = kOfFirst}), FailsWith(kUnavailable, "left alone"));
  } else {
    EXPECT_THAT(dataset.objects->Create("{}", {.shard = kOfFirst}),
                FailsWith(absl::StatusCode::kDeadlineExceeded, "may or may not have happened"));
  }
  SharedFleet().server(0).Resume();
}

TEST(Hosts, WhenAllConnectionsAreBusyACallWaitsAndThenSaysSo) {
  auto options = TestFleet::Options();
  options.pool.max_connections = 2;
  options.pool.min_connections = 0;
  options.pool.wait_ms = 2'000;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  std::atomic<bool> release = false;
  std::atomic<int> inside = 0;
  const auto hold = [&](uint64_t id) {
    return dataset.objects->Update(id,
                                   [&](std::string_view current) -> absl::StatusOr<std::string> {
                                     ++inside;
                                     EXPECT_TRUE(Eventually([&] { return release.load(); }));
                                     return std::string(current);
                                   },
                                   {});
  };
  const uint64_t other = *dataset.objects->Create("{}", {.shard = kOfFirst});
  std::thread one([&] { EXPECT_OK(hold(ids.first)); });
  std::thread two([&] { EXPECT_OK(hold(other)); });
  EXPECT_TRUE(Eventually([&] { return inside == 2; }));
  EXPECT_THAT(dataset.objects->Get(ids.first, {}),
              FailsWith(absl::StatusCode::kResourceExhausted, "all 2 connections to it were busy"));
  EXPECT_OK(dataset.objects->Get(ids.second, {}));
  release = true;
  one.join();
  two.join();
  EXPECT_OK(dataset.objects->Get(ids.first, {}));
}

TEST(Hosts, AnIdleConnectionToAnotherHostMakesRoomForOneMore) {
  auto options = TestFleet::Options();
  options.pool.max_total = 1;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  const Host first{"127.0.0.1", SharedFleet().server(0).port()};
  const Host second{"127.0.0.1", SharedFleet().server(1).port()};
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(dataset.objects->Get(ids.first, {}));
    EXPECT_EQ(dataset.backend->fleet().PoolOf(first).size(), 1u);
    EXPECT_EQ(dataset.backend->fleet().PoolOf(second).size(), 0u);
    EXPECT_OK(dataset.objects->Get(ids.second, {}));
    EXPECT_EQ(dataset.backend->fleet().PoolOf(first).size(), 0u);
    EXPECT_EQ(dataset.backend->fleet().PoolOf(second).size(), 1u);
  }
}

TEST(Hosts, WhenAllConnectionsToAllHostsAreBusyACallWaitsAndThenSaysSo) {
  auto options = TestFleet::Options();
  options.pool.max_total = 2;
  options.pool.wait_ms = 2'000;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  const uint64_t other = *dataset.objects->Create("{}", {.shard = kOfFirst});
  std::atomic<bool> release = false;
  std::atomic<int> inside = 0;
  const auto hold = [&](uint64_t id) {
    return dataset.objects->Update(id,
                                   [&](std::string_view current) -> absl::StatusOr<std::string> {
                                     ++inside;
                                     EXPECT_TRUE(Eventually([&] { return release.load(); }));
                                     return std::string(current);
                                   },
                                   {});
  };
  std::thread one([&] { EXPECT_OK(hold(ids.first)); });
  std::thread two([&] { EXPECT_OK(hold(other)); });
  EXPECT_TRUE(Eventually([&] { return inside == 2; }));
  EXPECT_THAT(dataset.objects->Get(ids.second, {}),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "all 2 connections that this process may have to all hosts were busy for 2000 ms; "
                        "raise pool.max_total"));
  release = true;
  one.join();
  two.join();
  EXPECT_OK(dataset.objects->Get(ids.second, {}));
}

TEST(Hosts, ManyThreadsOnTwoHostsShareTheConnectionsOfTheProcess) {
  auto options = TestFleet::Options();
  options.pool.max_total = 3;
  options.pool.wait_ms = 30'000;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  const Host first{"127.0.0.1", SharedFleet().server(0).port()};
  const Host second{"127.0.0.1", SharedFleet().server(1).port()};
  std::atomic<size_t> most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_OK(dataset.objects->Get(i / 10 % 2 == t % 2 ? ids.first : ids.second, {}));
        mysql::Fleet& fleet = dataset.backend->fleet();
        const size_t open = fleet.PoolOf(first).size() + fleet.PoolOf(second).size();
        if (open > most) most = open;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // A pool counts a connection that it asks for before the budget has said yes.
  EXPECT_LE(most, 3u + threads.size());
  EXPECT_LE(dataset.backend->fleet().PoolOf(first).size() + dataset.backend->fleet().PoolOf(second).size(),
            3u);
}

TEST(Hosts, AHostThatNobodyUsesAnyMoreKeepsNoConnection) {
  auto options = TestFleet::Options();
  options.pool.idle_s = 1;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  EXPECT_OK(dataset.objects->Get(ids.first, {}));
  const Host first{"127.0.0.1", SharedFleet().server(0).port()};
  EXPECT_TRUE(Eventually([&] { return dataset.backend->fleet().PoolOf(first).size() == 0; }));
  EXPECT_OK(dataset.objects->Get(ids.first, {}));
}

TEST(Hosts, ACallThatWaitsForAConnectionEndsWithItsCaller) {
  auto options = TestFleet::Options();
  options.pool.max_connections = 1;
  options.pool.min_connections = 0;
  options.pool.wait_ms = 600'000;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  std::atomic<bool> release = false;
  std::atomic<bool> inside = false;
  std::thread holder([&] {
    const auto hold = [&](std::string_view current) -> absl::StatusOr<std::string> {
      inside = true;
      EXPECT_TRUE(Eventually([&] { return release.load(); }));
      return std::string(current);
    };
    EXPECT_OK(dataset.objects->Update(ids.first, hold, {}));
  });
  EXPECT_TRUE(Eventually([&] { return inside.load(); }));
  {
    const CallScope scope(std::chrono::milliseconds(100));
    EXPECT_THAT(
        dataset.objects->Get(ids.first, {}),
        FailsWith(absl::StatusCode::kDeadlineExceeded, "it waited: all 1 connections to it were busy"));
  }
  const Host host{"127.0.0.1", SharedFleet().server(0).port()};
  std::atomic<bool> cancelled = false;
  std::thread cancels([&] {
    EXPECT_TRUE(Eventually([&] { return dataset.backend->fleet().PoolOf(host).waiting() > 0; }));
    cancelled = true;
  });
  {
    const CallScope scope(CallLimits{.cancelled = &cancelled});
    EXPECT_THAT(dataset.objects->Get(ids.first, {}),
                FailsWith(absl::StatusCode::kCancelled, "it waited: all 1 connections to it were busy"));
  }
  cancels.join();
  release = true;
  holder.join();
  EXPECT_OK(dataset.objects->Get(ids.first, {}));
}

TEST(Hosts, ACallThatLosesToOthersSaysSoWhenItsTimeIsUp) {
  auto options = TestFleet::Options();
  options.pool.lock_wait_s = 1;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  // Another client holds the lock of the row for as long as the test needs.
  std::thread holder([&] {
    try {
      SharedFleet().server(0).Run("BEGIN; SELECT * FROM db00000.pins FOR UPDATE; SELECT SLEEP(600)");
    } catch (const std::exception&) {
      // It is ended below.
    }
  });
  const std::string sleeper =
      "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE info LIKE 'SELECT "
      "SLEEP(600)%'";
  EXPECT_TRUE(Eventually([&] { return !SharedFleet().server(0).Run(sleeper).empty(); }));
  {
    const CallScope scope(std::chrono::milliseconds(6'000));
    const auto same = [](std::string_view current) -> absl::StatusOr<std::string> {
      return std::string(current);
    };
    EXPECT_THAT(dataset.objects->Update(ids.first, same, {}),
                FailsWith(absl::StatusCode::kDeadlineExceeded, "it waited: Lock wait timeout exceeded"));
  }
  SharedFleet().server(0).Run(SharedFleet().server(0).Run(sleeper));
  holder.join();
}

TEST(Hosts, ManyThreadsShareFewConnections) {
  auto options = TestFleet::Options();
  options.pool.max_connections = 2;
  options.pool.wait_ms = 30'000;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) EXPECT_OK(dataset.objects->Get(ids.first, {}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Host host{"127.0.0.1", SharedFleet().server(0).port()};
  EXPECT_LE(dataset.backend->fleet().PoolOf(host).size(), 2u);
}

TEST(Hosts, AMapThatMovesARangeUnderLoadFailsNoCall) {
  Opened dataset(kObjects);
  // Proxies to the same servers stand for hosts to which the shards were copied.
  TcpProxy other_first(SharedFleet().server(0).port());
  TcpProxy other_second(SharedFleet().server(1).port());
  const TwoObjects ids(*dataset.objects);
  Outcomes outcomes;
  std::atomic<uint64_t> created = 0;
  Load load(4, [&] {
    outcomes.Add(dataset.objects->Get(ids.first, {}).status());
    outcomes.Add(dataset.objects->Get(ids.second, {}).status());
    const auto id = dataset.objects->Create("{}", {});
    outcomes.Add(id.status());
    if (id.ok()) ++created;
  });
  const auto master = [&] {
    return dataset.backend->fleet().map(ShardSpace::kId).Find(0)->master.ToString();
  };
  for (int move = 0; move < 4; ++move) {
    ASSERT_TRUE(outcomes.MoreGood(200));
    const bool there = move % 2 == 0;
    const std::string first = there ? other_first.address() : SharedFleet().server(0).address();
    SharedFleet().WriteMaps(first, there ? other_second.address() : SharedFleet().server(1).address());
    ASSERT_TRUE(Eventually([&] { return master() == first; }));
  }
  ASSERT_TRUE(outcomes.MoreGood(200));
  load.Stop();
  EXPECT_EQ(outcomes.bad, 0);
  // No object was created twice, and none was acknowledged that is not stored.
  uint64_t stored = 0;
  for (uint32_t shard = 0; shard < TestFleet::kShards; ++shard) {
    const std::string table = mysql::DatabaseName(ShardSpace::kId, shard) + ".pins";
    stored += std::stoull(SharedFleet().OfShard(shard).Run("SELECT COUNT(*) FROM " + table));
  }
  EXPECT_EQ(stored, created + 2);
}

TEST(Hosts, ConnectionsThatTheServerClosedWhileIdleAreNoticed) {
  auto options = TestFleet::Options();
  options.pool.check_after_ms = 0;
  Opened dataset(kObjects, options);
  const TwoObjects ids(*dataset.objects);
  MariaDbServer& server = SharedFleet().server(0);
  server.Kill();
  server.Start();
  // Even a create succeeds, and is not in doubt, because the connection is tried before it is used.
  EXPECT_OK(dataset.objects->Create("{}", {.shard = kOfFirst}));
}

}  // namespace
}  // namespace kvstore::testing
