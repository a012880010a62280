#include "server/call/change_feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "catalog/file_catalog.h"
#include "server/call/work_queue.h"
#include "server/call/worker_pool.h"
#include "tests/server/gated_backend.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Tests that callers who wait for changes are not delayed by those who wait for machines that hang.
namespace kvstore::testing {
namespace {

/// An embedded backend, and one on other machines, each with datasets of which the second one's may hang.
class ChangeFeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Router::Backends backends;
    backends.emplace("here", MakeGatedBackend(gate_));
    backends.emplace("there", MakeGatedBackend(gate_, /*waits=*/true));
    auto router = Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog"), std::move(backends), "here");
    ASSERT_OK(router);
    router_ = *std::move(router);
    ASSERT_OK(router_->CreateDataset({.name = "embedded", .keep_changes_ms = 1000}));
    for (const char* name : {"answering", "hanging"}) {
      ASSERT_OK(router_->CreateDataset({.name = name, .backend = "there", .keep_changes_ms = 1000}));
    }
    gate_->Set([this](std::string_view dataset, std::string_view key) {
      if (dataset != "hanging" || key != kChangesKey) return absl::OkStatus();
      ++asked_;
      MutexLock lock(mutex_);
      while (hangs_) lock.Wait(released_);
      return absl::OkStatus();
    });
    feed_.emplace(*router_, [] { return false; });
  }
  void TearDown() override {
    Release();
    feed_.reset();
  }
  void Release() {
    {
      const MutexLock lock(mutex_);
      hangs_ = false;
    }
    released_.notify_all();
  }
  /// Waits for what is written to a dataset from now on; `told` is set when there is something. Returns how
  /// often the dataset that hangs was read before.
  int Wait(const std::string& dataset, std::atomic<bool>& told) {
    const std::string token = Token(dataset);
    const int before = asked_;
    feed_->Wait(
        dataset, token,
        {.due = [](auto) { return false; }, .retry = [&told] { told = true; }, .lane = {&workers_, &queue_}});
    return before;
  }
  /// Nothing hangs while a follower begins: its token says what was written.
  std::string Token(const std::string& dataset) {
    if (dataset == "hanging") Release();
    const auto page = router_->ReadChanges(dataset, kChangesFromNow, {});
    EXPECT_OK(page);
    const MutexLock lock(mutex_);
    hangs_ = true;
    return page.ok() ? page->token : std::string();
  }
  absl::Status Put(const std::string& dataset) {
    const CellWrite cell{"c", "v", std::nullopt};
    return router_->PutRow(dataset, "r", {&cell, 1}, {}).status();
  }

  const TempDir dir_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<Router> router_;
  server::WorkQueue queue_;
  server::WorkerPool workers_{2};
  std::atomic<int> asked_{0};
  Mutex mutex_;
  std::condition_variable released_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<server::ChangeFeed> feed_;  // ends first
};

TEST_F(ChangeFeedTest, ADatasetThatHangsDelaysNobodyElse) {
  std::atomic<bool> hanging{false};
  const int before = Wait("hanging", hanging);
  EXPECT_TRUE(Eventually([&] { return asked_ > before; })) << "somebody looks, and is stuck";
  for (const std::string dataset : {"embedded", "answering"}) {
    for (int round = 0; round < 3; ++round) {
      std::atomic<bool> told{false};
      Wait(dataset, told);
      ASSERT_OK(Put(dataset));
      EXPECT_TRUE(Eventually([&] { return told.load(); })) << dataset;
    }
  }
  // It is told when its machines answer.
  EXPECT_EQ(feed_->waiting(), 1u);
  ASSERT_OK(Put("hanging"));
  EXPECT_FALSE(hanging);
  Release();
  EXPECT_TRUE(Eventually([&] { return hanging.load(); }));
  EXPECT_EQ(feed_->waiting(), 0u);
}

TEST_F(ChangeFeedTest, ACallWhoseTimeIsOverEndsThoughItsDatasetHangs) {
  std::atomic<bool> ended{false};
  const std::string token = Token("hanging");
  std::atomic<bool> over{false};
  const int before = asked_;
  feed_->Wait("hanging", token,
              {.due = [&over](auto) { return over.load(); },
               .retry = [&ended] { ended = true; },
               .lane = {&workers_, &queue_}});
  EXPECT_TRUE(Eventually([&] { return asked_ > before; }));
  over = true;
  EXPECT_TRUE(Eventually([&] { return ended.load(); }));
}

}  // namespace
}  // namespace kvstore::testing
