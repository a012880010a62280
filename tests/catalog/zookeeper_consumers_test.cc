#include "catalog/zookeeper_consumers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "coordination/zookeeper.h"
#include "kvstore_api/limits.h"
#include "tests/support/status_matchers.h"
#include "tests/support/zookeeper_server.h"

/// The places of consumers in ZooKeeper.
namespace kvstore::testing {
namespace {

class ZooKeeperConsumersTest : public ::testing::Test {
 protected:
  static DatasetSpec Spec(uint64_t incarnation) {
    DatasetSpec spec;
    spec.name = "events";
    spec.incarnation = incarnation;
    return spec;
  }

  ZooKeeperServer server_;
  const ZooKeeperOptions options_{.servers = server_.address()};
  ZooKeeperConsumers one_{options_, "/kv"};
  ZooKeeperConsumers other_{options_, "/kv"};
};

TEST_F(ZooKeeperConsumersTest, AllProcessesSeeTheSameAndNobodyReplacesWhatHeDoesNotKnow) {
  EXPECT_TRUE(one_.List(Spec(1))->empty());
  EXPECT_THAT(one_.Find(Spec(1), "search"), FailsWith(absl::StatusCode::kNotFound, "named 'search'"));
  ASSERT_OK(one_.Put(Spec(1), "search", "first", std::nullopt));
  EXPECT_THAT(other_.Put(Spec(1), "search", "mine", std::nullopt), FailsWith(absl::StatusCode::kAborted, ""));
  const auto found = other_.Find(Spec(1), "search");
  ASSERT_OK(found);
  EXPECT_EQ(found->position, "first");
  EXPECT_GT(found->set_ms, 0u);
  ASSERT_OK(other_.Put(Spec(1), "search", std::string("sec\0nd", 6), found->version));
  EXPECT_THAT(one_.Put(Spec(1), "search", "late", found->version), FailsWith(absl::StatusCode::kAborted, ""));
  ASSERT_OK(one_.Put(Spec(1), "..", "", std::nullopt)) << "a name that ZooKeeper would refuse";
  const auto all = one_.List(Spec(1));
  ASSERT_OK(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->at(0).name, "..");
  EXPECT_EQ(all->at(1).position, std::string("sec\0nd", 6));
  ASSERT_OK(other_.Drop(Spec(1), ".."));
  EXPECT_THAT(one_.Drop(Spec(1), ".."), FailsWith(absl::StatusCode::kNotFound, "named '..'"));
  EXPECT_THAT(one_.Put(Spec(1), "search", "gone meanwhile", 7), FailsWith(absl::StatusCode::kAborted, ""));
}

TEST_F(ZooKeeperConsumersTest, TheyGoWithTheirDataset) {
  ASSERT_OK(one_.Put(Spec(1), "a", "1", std::nullopt));
  ASSERT_OK(one_.Put(Spec(1), "b", "1", std::nullopt));
  EXPECT_TRUE(one_.List(Spec(2))->empty()) << "another dataset of the name";
  ASSERT_OK(one_.Put(Spec(2), "a", "2", std::nullopt));
  ASSERT_OK(other_.DropAll(Spec(1)));
  ASSERT_OK(other_.DropAll(Spec(1)));
  EXPECT_TRUE(one_.List(Spec(1))->empty());
  EXPECT_EQ(one_.List(Spec(2))->size(), 1u);
  ZooKeeper zookeeper(options_, nullptr);
  EXPECT_EQ(zookeeper.Children("/kv/consumers")->size(), 1u);
}

TEST_F(ZooKeeperConsumersTest, TheFormOfANodeIsFixed) {
  ASSERT_OK(one_.Put(Spec(0xABC), "search", "place", std::nullopt));
  ZooKeeper zookeeper(options_, nullptr);
  const std::string path = "/kv/consumers/events-0000000000000abc/c-search";
  const auto node = zookeeper.Get(path, false);
  ASSERT_OK(node);
  EXPECT_EQ(node->data, "\x01place");
  ASSERT_OK(zookeeper.Set(path, "\x02of later", -1));
  EXPECT_THAT(one_.Find(Spec(0xABC), "search"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "newer version"));
}

TEST_F(ZooKeeperConsumersTest, ThereAreNoMoreThanTheLimitThoughManyMakeThemAtOnce) {
  std::atomic<size_t> made{0};
  std::vector<std::thread> threads;
  for (ZooKeeperConsumers* const places : {&one_, &other_}) {
    threads.emplace_back([&, places] {
      for (size_t i = 0; i < kMaxConsumers; ++i) {
        const std::string name = fmt::format("{}-{}", places == &one_ ? "one" : "other", i);
        absl::Status status;
        do {
          status = places->Put(Spec(1), name, "p", std::nullopt);
        } while (absl::IsAborted(status));
        if (status.ok()) {
          ++made;
        } else {
          EXPECT_THAT(status, FailsWith(absl::StatusCode::kResourceExhausted, "100 consumers already"));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, kMaxConsumers);
  EXPECT_EQ(one_.List(Spec(1))->size(), kMaxConsumers);
  EXPECT_THAT(one_.Put(Spec(1), "one-0", std::string((size_t{256} << 10) + 1, 'x'), 0),
              FailsWith(absl::StatusCode::kResourceExhausted, "262144"));
}

TEST_F(ZooKeeperConsumersTest, WithoutZooKeeperNobodyIsToldThatItWasNoted) {
  ASSERT_OK(one_.Put(Spec(1), "search", "first", std::nullopt));
  server_.Stop();
  ZooKeeperConsumers hasty({.servers = server_.address(), .call_timeout_ms = 200}, "/kv");
  EXPECT_TRUE(absl::IsUnavailable(hasty.Put(Spec(1), "search", "second", 0)));
  EXPECT_TRUE(absl::IsUnavailable(hasty.List(Spec(1)).status()));
  server_.Start();
  EXPECT_EQ(other_.Find(Spec(1), "search")->position, "first");
}

}  // namespace
}  // namespace kvstore::testing
