#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "tests/backends/cached/cache_fixture.h"
#include "tests/support/tcp_proxy.h"

/// How a list of cache servers comes into force.
namespace kvstore::cached {
namespace {

using testing::CacheServer;
using testing::Eventually;
using testing::FailsWith;
using testing::TcpProxy;

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

}  // namespace
}  // namespace kvstore::cached
