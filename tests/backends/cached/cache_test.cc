#include "backends/cached/protocol/cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/outcome.h"
#include "backends/cached/protocol/caches.h"
#include "backends/cached/servers/memcached.h"
#include "kvstore_api/call_scope.h"
#include "tests/support/cache_server.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/zookeeper_server.h"

namespace kvstore::cached {
namespace {

using testing::CacheServer;
using testing::Eventually;
using testing::FailsWith;
using testing::TcpProxy;
using testing::ZooKeeperServer;

constexpr char kNode[] = "/kvstore/caches/users";
constexpr Cache::Key kKey{.incarnation = 1, .id = 7};

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
  ::testing::AssertionResult IsCached(Caches& caches) {
    const auto hit = [&] {
      const int before = master_.reads;
      return Read(caches) == master_.value && master_.reads == before;
    };
    return Eventually(hit) ? ::testing::AssertionSuccess()
                           : ::testing::AssertionFailure() << "nothing is cached";
  }
  bool Suspended(Caches& caches, const CacheServer& server) {
    const auto view = caches.view().Load();
    return view != nullptr && view->view.suspended.contains("memcached " + server.address());
  }

  ZooKeeperServer zookeeper_;
  CacheServer memcached_{CacheServer::Kind::kMemcached};
  Master master_;
  bool used_ = false;
};

TEST_F(CacheTest, AnswersWhatItHasAndNeverWhatWasReplaced) {
  auto one = Open();
  auto other = Open();
  ASSERT_TRUE(IsCached(*one));
  ASSERT_TRUE(IsCached(*other));
  for (int value = 2; value < 50; ++value) {
    ASSERT_OK(Write(value % 2 == 0 ? *one : *other, value));
    ASSERT_EQ(Read(*one), value);
    ASSERT_EQ(Read(*other), value);
  }
  EXPECT_GT(one->objects().stats().hits + other->objects().stats().hits, 40U);
}

TEST_F(CacheTest, NobodyTrustsAServerInQuarantine) {
  auto caches = Open();
  ASSERT_TRUE(
      Eventually([&] { return caches->Look().ok() && caches->Look()->servers.at(0).guard.has_value(); }));
  ASSERT_TRUE(IsCached(*caches));
  EXPECT_TRUE(caches->Look()->servers.at(0).guard->trusted);
}

TEST_F(CacheTest, AHerdOnAColdKeyIsOneQuery) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  ASSERT_OK(Write(*caches, 5));
  master_.reads = 0;
  master_.pause_ms = 20;
  std::vector<std::thread> readers;
  for (int i = 0; i < 1000; ++i) readers.emplace_back([&] { EXPECT_EQ(Read(*caches), 5); });
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(master_.reads, 1);
}

TEST_F(CacheTest, ReadersGoToTheMasterWhileAWriterIsAtWork) {
  auto caches = Open();
  auto other = Open();
  ASSERT_TRUE(IsCached(*caches));
  ASSERT_TRUE(IsCached(*other));
  const auto status = caches->objects().Write(kKey, [&] {
    master_.reads = 0;
    EXPECT_EQ(Read(*other), 1);
    EXPECT_EQ(Read(*other), 1);
    EXPECT_EQ(master_.reads, 2);
    master_.value = 2;
    EXPECT_EQ(Read(*other), 2);
    return absl::OkStatus();
  });
  ASSERT_OK(status);
  EXPECT_TRUE(IsCached(*other));
}

TEST_F(CacheTest, AReadThatBeganBeforeAWriteFillsNothing) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  ASSERT_OK(Write(*caches, 2));
  Found found = std::move(caches->objects().Find({&kKey, 1}, 'v').front());
  ASSERT_TRUE(found.lease);
  ASSERT_OK(Write(*caches, 3));
  Fill(*caches, *found.lease, "2");
  EXPECT_EQ(Read(*caches), 3);
}

TEST_F(CacheTest, AWriteInDoubtLeavesItsMark) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  const auto lost = caches->objects().Write(kKey, [] { return MarkInDoubt(absl::UnavailableError("lost")); });
  EXPECT_TRUE(absl::IsUnavailable(lost));
  EXPECT_EQ(Read(*caches), 1);
  master_.value = 2;  // It has happened after all.
  EXPECT_EQ(Read(*caches), 2);
  ASSERT_OK(Write(*caches, 3));
  EXPECT_EQ(Read(*caches), 3);
  EXPECT_EQ(caches->objects().stats().in_doubt, 1U);
  // One that has certainly not happened leaves nothing.
  const Cache::Key another{.incarnation = 1, .id = 8};
  const auto refused = caches->objects().Write(another, [] { return absl::NotFoundError("no"); });
  EXPECT_TRUE(absl::IsNotFound(refused));
  EXPECT_EQ(Read(*caches, another), 3);
  master_.reads = 0;
  EXPECT_EQ(Read(*caches, another), 3);
  EXPECT_EQ(master_.reads, 0);
}

TEST_F(CacheTest, AMarkInDoubtOutlivesTheMemoryOfTheServer) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  const auto lost = caches->objects().Write(kKey, [] { return MarkInDoubt(absl::UnavailableError("lost")); });
  EXPECT_TRUE(IsInDoubt(lost));
  memcached_.Stop();
  memcached_.Start();
  const Cache::Key another{.incarnation = 1, .id = 8};
  ASSERT_TRUE(Eventually([&] {
    const int before = master_.reads;
    Read(*caches, another);
    return master_.reads == before;
  })) << "the server is trusted again";
  EXPECT_EQ(Read(*caches), 1);
  master_.value = 2;  // It has happened after all.
  EXPECT_EQ(Read(*caches), 2);
}

TEST_F(CacheTest, ADeadServerCostsItsHitsAndComesBack) {
  auto caches = Open();
  auto other = Open();
  ASSERT_TRUE(IsCached(*caches));
  ASSERT_TRUE(IsCached(*other));
  memcached_.Stop();
  EXPECT_EQ(Read(*caches), 1);
  ASSERT_OK(Write(*caches, 2));
  EXPECT_EQ(Read(*other), 2);
  EXPECT_TRUE(Suspended(*caches, memcached_));
  ASSERT_OK(Write(*other, 3));
  EXPECT_GE(caches->objects().stats().unmarked, 1U);
  memcached_.Start();
  EXPECT_TRUE(IsCached(*caches));
  EXPECT_TRUE(IsCached(*other));
  EXPECT_EQ(Read(*caches), 3);
  EXPECT_FALSE(Suspended(*caches, memcached_));
}

TEST_F(CacheTest, AServerThatHangsHasNothingOldWhenItWakes) {
  auto caches = Open();
  auto other = Open();
  ASSERT_TRUE(IsCached(*caches));
  ASSERT_TRUE(IsCached(*other));
  memcached_.Pause();
  ASSERT_OK(Write(*caches, 2));
  memcached_.Continue();
  EXPECT_EQ(Read(*caches), 2);
  EXPECT_EQ(Read(*other), 2);
  EXPECT_TRUE(IsCached(*other));
}

/// Where the process that is opened last reaches the cache server.
std::string way_of_last;  // NOLINT: what opens servers is a plain function

std::unique_ptr<Server> OpenByOwnWay(const ServerOptions& options) {
  /// A server by another way, under its own name.
  class ByOwnWay : public Server {
   public:
    ByOwnWay(std::string name, const ServerOptions& way) : name_(std::move(name)), of_(OpenMemcached(way)) {}
    const std::string& name() const override { return name_; }
    absl::StatusOr<LookedAll> Look(std::span<const Key> keys, bool lease) override {
      return of_->Look(keys, lease);
    }
    absl::Status Fill(std::span<const Filling> fillings, uint32_t ttl_s) override {
      return of_->Fill(fillings, ttl_s);
    }
    absl::Status Release(const Key& key, uint64_t lease) override { return of_->Release(key, lease); }
    absl::StatusOr<Marked> Mark(std::string_view key, uint64_t mark) override { return of_->Mark(key, mark); }
    absl::Status Unmark(std::string_view key, uint64_t mark, uint64_t version) override {
      return of_->Unmark(key, mark, version);
    }
    absl::Status Forget(std::string_view key) override { return of_->Forget(key); }
    absl::StatusOr<std::optional<std::string>> ReadGuard() override { return of_->ReadGuard(); }
    absl::StatusOr<bool> ChangeGuard(const MakeGuard& make) override { return of_->ChangeGuard(make); }
    uint32_t connections() const override { return of_->connections(); }

   private:
    const std::string name_;
    const std::unique_ptr<Server> of_;
  };
  ServerOptions way = options;
  way.address = way_of_last;
  return std::make_unique<ByOwnWay>("memcached " + options.address, way);
}

TEST_F(CacheTest, AWriterThatIsCutOffSuspendsTheServerForAll) {
  auto other = Open();
  ASSERT_TRUE(IsCached(*other));
  TcpProxy proxy(memcached_.port());
  way_of_last = proxy.address();
  ViewKeeper view(ZooKeeper(), kNode, {});
  Cache alone(CacheKind::kObjects, Options({}), view, OpenByOwnWay);
  const auto write = [&](int value) {
    return alone.Write(kKey, [&] {
      master_.value = value;
      return absl::OkStatus();
    });
  };
  ASSERT_OK(write(2));
  ASSERT_TRUE(IsCached(*other));
  proxy.Cut();
  // The other process could go on to read what it has from the server, which it reaches.
  ASSERT_OK(write(3));
  EXPECT_EQ(Read(*other), 3);
  EXPECT_TRUE(Suspended(*other, memcached_));
  // It lets the server be used again, which the writer has to do without once more.
  ASSERT_TRUE(IsCached(*other));
  ASSERT_OK(write(4));
  EXPECT_EQ(Read(*other), 4);
  proxy.Mend();
  ASSERT_TRUE(IsCached(*other));
  ASSERT_OK(write(5));
  EXPECT_EQ(Read(*other), 5);
}

TEST_F(CacheTest, ARestartBetweenTwoLooksIsNoticed) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  const auto before = caches->Look()->servers.at(0).guard;
  memcached_.Stop();
  memcached_.Start();
  EXPECT_EQ(Read(*caches), 1);
  ASSERT_OK(Write(*caches, 2));
  EXPECT_EQ(Read(*caches), 2);
  EXPECT_TRUE(IsCached(*caches));
  EXPECT_NE(caches->Look()->servers.at(0).guard->number, before->number);
}

TEST_F(CacheTest, WithoutZooKeeperReadsGoToTheMasterAndWritesGoOn) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  zookeeper_.Stop();
  ASSERT_TRUE(Eventually([&] { return !caches->view().Load()->Holds(); }));
  master_.reads = 0;
  EXPECT_EQ(Read(*caches), 1);
  EXPECT_EQ(master_.reads, 1);
  ASSERT_OK(Write(*caches, 2));
  EXPECT_EQ(Read(*caches), 2);
  // Only where the cache server is gone, too, nobody can tell the others.
  memcached_.Stop();
  const auto refused = Write(*caches, 3);
  EXPECT_THAT(refused, FailsWith(absl::StatusCode::kUnavailable, "nothing was written"));
  EXPECT_EQ(master_.value, 2);
  EXPECT_FALSE(IsInDoubt(refused));
  // One that has lost its memory needs a guard, which only a process makes that knows the list in force.
  memcached_.Start();
  EXPECT_THAT(Write(*caches, 3), FailsWith(absl::StatusCode::kUnavailable, "nothing was written"));
  zookeeper_.Start();
  EXPECT_TRUE(Eventually([&] { return Write(*caches, 4).ok(); }));
  EXPECT_EQ(Read(*caches), 4);
  EXPECT_TRUE(IsCached(*caches));
}

TEST_F(CacheTest, AWriteEndsInTimeWhileItWaitsForOthersToHear) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  memcached_.Stop();
  {
    const CallScope scope(std::chrono::milliseconds(50));
    EXPECT_TRUE(absl::IsDeadlineExceeded(Write(*caches, 2)));
  }
  EXPECT_EQ(master_.value, 1);
}

TEST_F(CacheTest, ADatasetThatLeavesTakesNothingBack) {
  auto caches = Open();
  auto other = Open();
  ASSERT_TRUE(IsCached(*caches));
  ASSERT_TRUE(IsCached(*other));
  ASSERT_OK(caches->objects().Leave(kKey.incarnation));
  master_.value = 2;  // It was written to elsewhere, and is here again.
  EXPECT_EQ(Read(*other), 2);
  EXPECT_EQ(Read(*caches), 2);
  EXPECT_TRUE(IsCached(*other));
  // Other datasets keep what is cached of them.
  const Cache::Key another{.incarnation = 2, .id = 7};
  Read(*caches, another);
  ASSERT_OK(caches->objects().Leave(kKey.incarnation));
  master_.reads = 0;
  ASSERT_TRUE(Eventually([&] {
    const int before = master_.reads;
    Read(*other, another);
    return master_.reads == before;
  }));
}

TEST_F(CacheTest, DropForgetsEverything) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  ASSERT_OK(caches->Drop());
  master_.value = 2;
  EXPECT_EQ(Read(*caches), 2);
  EXPECT_TRUE(IsCached(*caches));
}

TEST_F(CacheTest, AnotherListIsUsedByAllOrByNone) {
  CacheServer second(CacheServer::Kind::kMemcached);
  auto old = Open();
  ASSERT_TRUE(IsCached(*old));
  auto young = Open({second.address()});
  ASSERT_TRUE(IsCached(*young)) << "it uses the list in force";
  EXPECT_FALSE(young->Look()->as_configured);
  ASSERT_OK(young->UseServers({}));
  EXPECT_TRUE(young->Look()->as_configured);
  ASSERT_OK(Write(*old, 2));
  EXPECT_EQ(Read(*young), 2);
  ASSERT_TRUE(IsCached(*young));
  ASSERT_TRUE(IsCached(*old));
  ASSERT_OK(Write(*young, 3));
  EXPECT_EQ(Read(*old), 3);
}

TEST_F(CacheTest, NobodyReadsByAnOldListWhileANewOneComesIntoForce) {
  CacheServer second(CacheServer::Kind::kMemcached);
  auto writer = Open();
  TcpProxy way(zookeeper_.port());
  auto reader = std::make_unique<Caches>(
      Options({memcached_.address()}),
      ZooKeeperOptions{
          .servers = way.address(), .auth = {}, .session_timeout_ms = 4000, .call_timeout_ms = 500},
      kNode);
  ASSERT_TRUE(IsCached(*writer));
  ASSERT_TRUE(IsCached(*reader));
  // The reader hears nothing, and trusts what it knows for the rest of its lease.
  way.Stall();
  std::atomic<bool> done{false};
  std::thread change([&] {
    EXPECT_OK(Open({second.address()})->UseServers({}));
    done = true;
  });
  for (int value = 2; !done || value < 200; ++value) {
    ASSERT_OK(Write(*writer, value));
    ASSERT_EQ(Read(*reader), value);
    ASSERT_EQ(Read(*writer), value);
  }
  change.join();
  way.Flow();
  EXPECT_TRUE(IsCached(*reader));
}

TEST_F(CacheTest, OfTwoChangesOfTheListOneComesIntoForce) {
  CacheServer second(CacheServer::Kind::kMemcached);
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  for (int round = 0; round < 3; ++round) {
    absl::Status first;
    absl::Status other;
    std::thread one([&] { first = Open({memcached_.address(), second.address()})->UseServers({}); });
    std::thread two([&] { other = Open({second.address()})->UseServers({}); });
    one.join();
    two.join();
    EXPECT_TRUE(first.ok() || other.ok()) << first << other;
    for (const absl::Status& status : {first, other})
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
    ASSERT_OK(caches->view().Refresh());
    EXPECT_EQ(caches->view().Load()->view.changing, 0U);
    ASSERT_OK(Write(*caches, round));
    EXPECT_EQ(Read(*caches), round);
    EXPECT_TRUE(IsCached(*caches));
  }
}

TEST_F(CacheTest, AWriterThatKnowsTheListOfBeforeIsTold) {
  CacheServer second(CacheServer::Kind::kMemcached);
  TcpProxy way(zookeeper_.port());
  Open();
  auto old = std::make_unique<Caches>(
      Options({memcached_.address()}),
      ZooKeeperOptions{
          .servers = way.address(), .auth = {}, .session_timeout_ms = 4000, .call_timeout_ms = 500},
      kNode);
  ASSERT_TRUE(IsCached(*old));
  way.Cut();
  auto young = Open({second.address()});
  ASSERT_OK(young->UseServers({}));
  ASSERT_TRUE(IsCached(*young));
  // It would mark a server that nobody reads.
  EXPECT_THAT(Write(*old, 2), FailsWith(absl::StatusCode::kUnavailable, "nothing was written"));
  EXPECT_EQ(Read(*young), 1);
  way.Mend();
  EXPECT_TRUE(Eventually([&] { return Write(*old, 2).ok(); }));
  EXPECT_EQ(Read(*young), 2);
}

TEST_F(CacheTest, AServerOfTheListBeforeMustAnswerOrBeStopped) {
  CacheServer second(CacheServer::Kind::kMemcached);
  auto old = Open();
  ASSERT_TRUE(IsCached(*old));
  memcached_.Stop();
  auto young = Open({second.address()});
  EXPECT_THAT(young->UseServers({}), FailsWith(absl::StatusCode::kFailedPrecondition, memcached_.address()));
  ASSERT_OK(Write(*young, 2));
  EXPECT_EQ(Read(*old), 2);
  ASSERT_OK(young->UseServers({"memcached " + memcached_.address()}));
  ASSERT_TRUE(IsCached(*young));
  ASSERT_OK(Write(*old, 3));
  EXPECT_EQ(Read(*young), 3);
}

TEST_F(CacheTest, TheCheckerFindsWhatIsNotSo) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  master_.value = 9;  // written past the cache
  caches->objects().Check(kKey, 'v', [&]() -> absl::StatusOr<std::optional<std::string>> {
    return std::to_string(master_.value);
  });
  EXPECT_TRUE(Eventually([&] { return caches->objects().stats().inconsistent == 1; }));
  EXPECT_EQ(Read(*caches), 9) << "what was wrong is removed";
}

}  // namespace
}  // namespace kvstore::cached
