#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/backends/mysql/changes_fixture.h"
#include "tests/backends/mysql/noted_places.h"

/// The consumers of datasets on real servers.
namespace kvstore::testing {
namespace {

TEST_F(MySqlChangesTest, ConsumersAreRefusedWhereMapsAreFiles) {
  Create({.name = "rows"});
  EXPECT_THAT(store_->SetConsumer("rows", "search", kChangesFromNow),
              FailsWith(absl::StatusCode::kUnimplemented, "noted in ZooKeeper"));
  EXPECT_THAT(store_->ListConsumers("rows"), FailsWith(absl::StatusCode::kUnimplemented, "store the token"));
  ASSERT_OK(store_->DropDataset("rows", {}));
}

TEST_F(MySqlChangesTest, AConsumerWhoHasReadNothingIsNoOlderThanTheLog) {
  auto backend =
      MySqlBackend::Open(SharedFleet().Sources(), TestFleet::Options(), std::make_unique<NotedPlaces>());
  ASSERT_OK(backend);
  Create({.name = "rows"});
  const DatasetSpec spec = *store_->GetDataset("rows");
  const auto begin = (*backend)->StartChanges(spec, ChangesFrom::kBegin);
  ASSERT_OK(begin);
  ASSERT_OK((*backend)->SetConsumer(spec, "search", *begin));
  ASSERT_OK(Put("rows", "r", "c", "v"));
  const auto consumers = (*backend)->ListConsumers(spec);
  ASSERT_OK(consumers);
  ASSERT_EQ(consumers->size(), 1u);
  EXPECT_FALSE(consumers->front().position.empty());
  EXPECT_GT(consumers->front().lag_ms, 0u);
  EXPECT_LT(consumers->front().lag_ms, kDayMs) << "the servers are not so old";
}

TEST_F(MySqlChangesTest, ADropRemovesWhatIsNotedMeanwhile) {
  auto owned = std::make_unique<NotedPlaces>();
  NotedPlaces& places = *owned;
  auto backend = MySqlBackend::Open(SharedFleet().Sources(), TestFleet::Options(), std::move(owned));
  ASSERT_OK(backend);
  Create({.name = "rows"});
  const DatasetSpec spec = *store_->GetDataset("rows");
  const auto now = (*backend)->StartChanges(spec, ChangesFrom::kNow);
  ASSERT_OK(now);
  ASSERT_OK((*backend)->SetConsumer(spec, "before", *now));
  // A follower at another server, which has not heard of the drop, notes where it is.
  places.after_drop_all = [&, noted = false]() mutable {
    if (std::exchange(noted, true)) return;
    EXPECT_OK(places.Put(spec, "meanwhile", *now, std::nullopt));
  };
  ASSERT_OK((*backend)->DropDataset(spec));
  EXPECT_TRUE(places.List(spec)->empty());
}

}  // namespace
}  // namespace kvstore::testing
