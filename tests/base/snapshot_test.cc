#include "base/snapshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace kvstore {
namespace {

TEST(Snapshot, OldValuesGoWithTheirLastReader) {
  Snapshot<int> snapshot(std::make_shared<const int>(1));
  auto second = std::make_shared<const int>(2);
  const std::weak_ptr<const int> watched = second;
  snapshot.Store(second);
  second.reset();
  auto reader = snapshot.Load();
  snapshot.Store(std::make_shared<const int>(3));
  EXPECT_EQ(*reader, 2);
  EXPECT_FALSE(watched.expired());
  reader.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(*snapshot.Load(), 3);
}

TEST(Snapshot, NoThreadGoesBack) {
  Snapshot<int> snapshot(std::make_shared<const int>(0));
  std::atomic<int> stored = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      for (int last = 0; last < 2000;) {
        // A load must return at least what was stored before it began.
        const int least = stored;
        const int now = *snapshot.Load();
        ASSERT_GE(now, least);
        ASSERT_GE(now, last);
        last = now;
      }
    });
  }
  for (int i = 1; i <= 2000; ++i) {
    snapshot.Store(std::make_shared<const int>(i));
    stored = i;
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace kvstore
