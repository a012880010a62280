#include <gtest/gtest.h>

#include "backend_api/outcome.h"
#include "kvstore_api/in_doubt.h"
#include "tests/backends/cached/cache_fixture.h"
#include "tests/support/tcp_proxy.h"

/// Tests of what becomes of marks: those of writes in doubt, of writes that took too long, and those that
/// could not be removed.
namespace kvstore::cached {
namespace {

using testing::Eventually;
using testing::TcpProxy;

/// A key that is cached when the server is trusted again, whatever becomes of kKey.
constexpr Cache::Key kOther{.incarnation = 1, .id = 8};

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
  // Twice, as it has been set again by the second time.
  for (int restart = 0; restart < 2; ++restart) {
    memcached_.Stop();
    memcached_.Start();
    ASSERT_TRUE(IsCached(*caches, kOther)) << "the server is trusted again";
  }
  EXPECT_EQ(Read(*caches), 1);
  master_.value = 2;  // It has happened after all.
  EXPECT_EQ(Read(*caches), 2);
}

TEST_F(CacheTest, AWriteInDoubtThatHadNoMarkGetsOne) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  memcached_.Stop();
  const auto lost = caches->objects().Write(kKey, [] { return MarkInDoubt(absl::UnavailableError("lost")); });
  EXPECT_TRUE(IsInDoubt(lost)) << lost;
  EXPECT_EQ(caches->objects().stats().unmarked, 1U);
  memcached_.Start();
  ASSERT_TRUE(IsCached(*caches, kOther));
  EXPECT_EQ(Read(*caches), 1);
  master_.value = 2;  // It has happened after all.
  EXPECT_EQ(Read(*caches), 2);
}

TEST_F(CacheTest, AWriteThatTookTooLongLeavesNothingOfBefore) {
  auto caches = Open();
  auto other = Open();
  ASSERT_TRUE(IsCached(*caches));
  const auto status = caches->objects().Write(kKey, [&] {
    // As if this process were stopped: the server loses the mark, its quarantine ends, and somebody fills it.
    memcached_.Stop();
    memcached_.Start();
    EXPECT_TRUE(IsCached(*other));
    master_.value = 2;
    return absl::OkStatus();
  });
  ASSERT_OK(status);
  EXPECT_EQ(Read(*other), 2);
  EXPECT_EQ(Read(*caches), 2);
}

TEST_F(CacheTest, AWriteThatTookTooLongIsInDoubtIfItCannotClearTheCache) {
  auto caches = Open();
  ASSERT_TRUE(IsCached(*caches));
  const auto status = caches->objects().Write(kKey, [&] {
    // In this order: while there is a ZooKeeper, the server would be suspended, and nothing be in doubt.
    zookeeper_.Stop();
    memcached_.Stop();
    EXPECT_TRUE(Eventually([&] { return !caches->view().Load()->Holds(); }));
    master_.value = 2;
    return absl::OkStatus();
  });
  EXPECT_TRUE(IsInDoubt(status)) << status;
  EXPECT_EQ(master_.value, 2);
}

TEST_F(CacheTest, AMarkThatCouldNotBeRemovedIsRemovedLater) {
  TcpProxy proxy(memcached_.port());
  auto caches = Open({proxy.address()});
  ASSERT_OK(caches->UseServers({}));
  ASSERT_TRUE(IsCached(*caches));
  const auto status = caches->objects().Write(kKey, [&] {
    master_.value = 2;
    proxy.Cut();
    return absl::OkStatus();
  });
  ASSERT_OK(status);
  EXPECT_EQ(Read(*caches), 2);
  proxy.Mend();
  EXPECT_TRUE(IsCached(*caches)) << "the mark would stay for a day";
  EXPECT_EQ(Read(*caches), 2);
}

}  // namespace
}  // namespace kvstore::cached
