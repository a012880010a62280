#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "migration/shadow_reads.h"

namespace kvstore::testing {
namespace {

using migration::ShadowQueue;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ShadowQueue, GivesEachUnitOnceTheNewestReadsFirst) {
  ShadowQueue queue;
  queue.Offer({"old"});
  queue.Offer({"b", "a"});
  queue.Offer({"a", "c"});
  EXPECT_THAT(queue.Take(3), ElementsAre("a", "b", "c"));
  EXPECT_THAT(queue.Take(3), ElementsAre("old"));
}

TEST(ShadowQueue, DropsWhatItHasNoRoomForAndCountsIt) {
  ShadowQueue queue;
  for (size_t i = 0; i < ShadowQueue::kMost + 5; ++i) queue.Offer({std::to_string(i)});
  EXPECT_EQ(queue.TakeDropped(), 5u);
  EXPECT_EQ(queue.TakeDropped(), 0u) << "it was told";
  EXPECT_THAT(queue.Take(ShadowQueue::kMost), SizeIs(ShadowQueue::kMost));
  queue.CountDropped(7);
  EXPECT_EQ(queue.TakeDropped(), 7u);
}

TEST(ShadowQueue, WhoWaitsIsWokenByAReadAndByTheEnd) {
  ShadowQueue queue;
  std::vector<std::string> last = {"not taken yet"};
  std::thread taker([&] {
    while (!last.empty()) last = queue.Take(1);
  });
  queue.Offer({"a"});
  // The queue may have been busy at that moment, and have dropped it.
  while (queue.TakeDropped() > 0) queue.Offer({"a"});
  queue.Close();
  taker.join();
  EXPECT_THAT(last, IsEmpty());
  queue.Offer({"b"});
  EXPECT_THAT(queue.Take(1), IsEmpty()) << "it is closed";
  EXPECT_EQ(queue.TakeDropped(), 1u);
}

}  // namespace
}  // namespace kvstore::testing
