#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cached/servers/memcached.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/in_doubt.h"
#include "tests/backends/cached/cache_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"

/// Reads and writes through the caches of some processes, and what fails in between.
namespace kvstore::cached {
namespace {

using testing::CacheServer;
using testing::Eventually;
using testing::FailsWith;
using testing::TcpProxy;

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
  master_.pause_ms = 20;
  // A reader asks the master itself if the one who fills takes too long, as it may on a busy machine.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_OK(Write(*caches, 5));
    master_.reads = 0;
    std::vector<std::thread> readers;
    for (int i = 0; i < 1000; ++i) readers.emplace_back([&] { EXPECT_EQ(Read(*caches), 5); });
    for (std::thread& reader : readers) reader.join();
    return master_.reads == 1;
  }));
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

/// Opens the server of that address, which is reached at another one.
std::unique_ptr<Server> OpenByWay(const std::string& way, const std::string& address,
                                  const std::string& guard) {
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
  return std::make_unique<ByOwnWay>("memcached " + address,
                                    ServerOptions{.address = way,
                                                  .guard = guard,
                                                  .timeout = std::chrono::milliseconds(1000),
                                                  .user = {},
                                                  .password = {}});
}

TEST_F(CacheTest, AWriterThatIsCutOffSuspendsTheServerForAll) {
  auto other = Open();
  ASSERT_TRUE(IsCached(*other));
  TcpProxy proxy(memcached_.port());
  ViewKeeper view(ZooKeeper(), kNode, {});
  Cache alone(CacheKind::kObjects, Options({}), view,
              [&](const std::string& address, const std::string& guard) {
                return OpenByWay(proxy.address(), address, guard);
              });
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

TEST_F(CacheTest, EncryptedServersAreUsed) {
  const testing::TempDir dir;
  testing::Authority authority(dir.path(), "authority");
  const testing::Authority::Files files = authority.Issue("cache");
  const testing::CacheServer server(
      testing::CacheServer::Kind::kMemcached, {},
      testing::CacheServer::Tls{.cert = files.cert, .key = files.key, .client_ca = {}});
  CacheOptions options = Options({server.address()});
  options.memcached_tls = ClientTls{.ca = authority.file(), .cert = {}, .key = {}, .server_name = {}};
  Caches caches(options, ZooKeeper(), kNode);
  ASSERT_OK(caches.CheckTls());
  ASSERT_OK(caches.UseServers({}));
  EXPECT_TRUE(IsCached(caches));
  EXPECT_OK(Write(caches, 2));
  EXPECT_EQ(Read(caches), 2);
  options.memcached_tls->ca = files.key;
  EXPECT_THAT(Caches(options, ZooKeeper(), kNode).CheckTls(),
              testing::FailsWith(absl::StatusCode::kInvalidArgument, "objects.tls.ca: cannot use"));
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
