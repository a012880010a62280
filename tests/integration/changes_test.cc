#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kvstore_api/connect.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/random.h"
#include "tests/support/replica.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Followers of a server that is killed: what they have is what the store has.
namespace kvstore::testing {
namespace {

constexpr uint64_t kDay = 86'400'000;

TEST(ChangesOfAServer, AReplicaIsLikeTheDatasetThoughTheServerIsKilled) {
  const TempDir dir;
  KvServer server(KV_PROGRAM, {"--data", (dir / "store").string()});
  Random random(Seed("changes"));
  {
    const auto store = *Connect(server.address());
    ASSERT_OK(store->CreateDataset({.name = "rows", .max_versions = 3, .keep_changes_ms = kDay}));
  }
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, mine = Random(random.Next())]() mutable {
      const auto store = *Connect(server.address(), {.deadline_ms = 20'000});
      while (!stop) {
        const std::string row = "r" + std::to_string(mine.Below(20));
        const std::string column = "c" + std::to_string(mine.Below(5));
        const std::string value = std::to_string(mine.Next());
        const CellWrite cell{column, value, std::nullopt};
        // Whether a write that was cut off has happened nobody knows; the replica must have it if it has.
        const bool done = mine.OneIn(10) ? store->DeleteRow("rows", row, {}).ok()
                                         : store->PutRow("rows", row, {&cell, 1}, {}).ok();
        if (done) ++written;
      }
    });
  }
  Replica replica;
  std::string token;
  std::atomic<bool> followed{false};
  std::thread follower([&] {
    const auto store = *Connect(server.address(), {.deadline_ms = 20'000});
    while (!followed) {
      const absl::Status status = replica.Follow(*store, "rows", token, 50);
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  Replica watched;
  std::string watched_token(kChangesFromBegin);
  std::thread watcher([&] {
    const auto store = *Connect(server.address(), {.deadline_ms = 20'000});
    while (!followed) {
      const auto stream = store->WatchChanges("rows", watched_token);
      for (absl::Status end = stream.status(); end.ok() && !followed;) {
        const auto page = (*stream)->Next();
        end = page.status();
        EXPECT_TRUE(end.ok() || absl::IsUnavailable(end)) << end;
        if (!end.ok()) break;
        for (const Change& change : page->changes) watched.Apply(change);
        watched_token = page->token;
      }
    }
  });
  for (int kill = 0; kill < 5; ++kill) {
    const uint64_t before = written;
    EXPECT_TRUE(Eventually([&] { return written > before + random.Below(2'000); }));
    server.Kill();
    server.Start();
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
  followed = true;
  follower.join();
  watcher.join();
  const auto store = *Connect(server.address());
  ASSERT_OK(replica.Follow(*store, "rows", token));
  ASSERT_OK(watched.Follow(*store, "rows", watched_token));
  ASSERT_OK_AND_ASSIGN(const Replica whole, Replica::Of(*store, "rows"));
  EXPECT_EQ(replica, whole);
  EXPECT_EQ(watched, whole);
  EXPECT_FALSE(whole.columns.empty());
}

}  // namespace
}  // namespace kvstore::testing
