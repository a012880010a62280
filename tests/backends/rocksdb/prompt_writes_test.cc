#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/outcome.h"
#include "backend_api/prompt_scope.h"
#include "backends/rocksdb/engine/change_log.h"
#include "base/hash.h"
#include "base/shift_clock.h"
#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Puts of threads that must not wait (backend_api/prompt_scope.h).
namespace kvstore::testing {
namespace {

class PromptWrites : public ::testing::Test {
 protected:
  void SetUp() override {
    Open({});
    ASSERT_OK(backend_->CreateDataset(spec_));
    rows_ = *backend_->OpenRows(spec_);
  }
  void TearDown() override { ShiftWallClock(0); }

  /// Opens the store, which must not be open, with these datasets.
  void Open(std::span<const DatasetSpec> known) {
    auto opened = OpenRocksDb(dir_.path(), known);
    ASSERT_OK(opened);
    backend_ = *std::move(opened);
  }

  rocks::Engine& engine() { return backend_->engine(); }
  uint64_t HashOf(const std::string& row) const { return Fnv1a(row, spec_.incarnation); }

  const TempDir dir_;
  const DatasetSpec spec_{.name = "rows", .max_versions = 0, .incarnation = 1};
  std::unique_ptr<RocksDbBackend> backend_;
  std::shared_ptr<RowStore> rows_;
};

/// Holds the lock of a row as a write does that reads before it writes, until it is destroyed.
class HeldRow {
 public:
  HeldRow(rocks::RowLocks& locks, uint64_t hash)
      : thread_([this, &locks, hash] {
          const auto lock = locks.Exclude(hash);
          held_.set_value();
          released_.get_future().wait();
        }) {
    held_.get_future().wait();
  }
  ~HeldRow() {
    released_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> held_;
  std::promise<void> released_;
  std::thread thread_;
};

TEST_F(PromptWrites, APutIsMadeWhereNothingHoldsItUp) {
  {
    const PromptScope prompt;
    EXPECT_TRUE(IsPrompt());
    ASSERT_OK(PutCell(*rows_, "r", "x", "v", 1));
  }
  EXPECT_FALSE(IsPrompt());
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "x@1=v");
}

TEST_F(PromptWrites, ADurablePutAndOneWithAConditionWouldWait) {
  const CellWrite cell{"x", "v", 1};
  const PromptScope prompt;
  EXPECT_TRUE(IsWouldWait(rows_->Put("r", {&cell, 1}, {.sync = true}).status()));
  EXPECT_TRUE(IsWouldWait(rows_->Put("r", {&cell, 1}, {.condition = Condition{"x", std::nullopt}}).status()));
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "");
}

TEST_F(PromptWrites, APutOfARowThatIsLockedWouldWait) {
  const CellWrite cell{"x", "v", 1};
  {
    const HeldRow held(engine().locks(), HashOf("r"));
    const PromptScope prompt;
    const absl::Status status = rows_->Put("r", {&cell, 1}, {}).status();
    EXPECT_TRUE(IsWouldWait(status)) << status;
    EXPECT_FALSE(IsInDoubt(status));
    EXPECT_FALSE(IsMigrating(status));
  }
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "");
  ASSERT_OK(rows_->Put("r", {&cell, 1}, {}));
}

TEST_F(PromptWrites, BehindAPutOfABatchThatWouldWaitNoneIsMade) {
  const CellWrite cell{"x", "v", 1};
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("row" + std::to_string(i));
  std::vector<RowWrite> writes;
  for (const std::string& name : names) writes.push_back({.row = name, .cells = {&cell, 1}});
  std::vector<absl::StatusOr<PutResult>> results;
  {
    const HeldRow held(engine().locks(), HashOf("row50"));
    const PromptScope prompt;
    results = rows_->PutMany(writes);
  }
  ASSERT_EQ(results.size(), names.size());
  const auto first = std::find_if(results.begin(), results.end(),
                                  [](const auto& result) { return IsWouldWait(result.status()); });
  EXPECT_LE(first - results.begin(), 50);
  for (size_t i = 0; i < names.size(); ++i) {
    const bool made = i < static_cast<size_t>(first - results.begin());
    EXPECT_EQ(results[i].ok(), made) << names[i];
    EXPECT_EQ(IsWouldWait(results[i].status()), !made) << names[i];
    EXPECT_EQ(Read(*rows_, names[i], {.versions = 9}), made ? "x@1=v" : "") << names[i];
  }
}

TEST_F(PromptWrites, WhileRocksDbStopsWritesAPutWouldWait) {
  ASSERT_OK(PutCell(*rows_, "r", "x", "v", 1));
  rocksdb::ColumnFamilyHandle* const handle = engine().FindFamily("rows")->handle;
  ASSERT_TRUE(engine().db().Flush({}, handle).ok());
  // One file in level 0, which cannot be compacted, is too much.
  ASSERT_TRUE(engine().db().PauseBackgroundWork().ok());
  ASSERT_TRUE(engine()
                  .db()
                  .SetOptions(handle, {{"level0_file_num_compaction_trigger", "1"},
                                       {"level0_slowdown_writes_trigger", "1"},
                                       {"level0_stop_writes_trigger", "1"}})
                  .ok());
  const CellWrite cell{"x", "w", 2};
  {
    const PromptScope prompt;
    const absl::Status status = rows_->Put("r", {&cell, 1}, {}).status();
    EXPECT_TRUE(IsWouldWait(status)) << status;
    EXPECT_FALSE(IsInDoubt(status));
  }
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "x@1=v");
  ASSERT_TRUE(engine().db().ContinueBackgroundWork().ok());
  ASSERT_OK(rows_->Put("r", {&cell, 1}, {}));
  EXPECT_EQ(Read(*rows_, "r", {.versions = 9}), "x@2=w x@1=v");
}

TEST_F(PromptWrites, AfterOneThatFailedThoseThatFollowWouldWait) {
  const CellWrite cell{"x", "v", 1};
  const PromptScope prompt;
  {
    const NoFileGrows full;
    const absl::Status status = rows_->Put("r", {&cell, 1}, {}).status();
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(IsWouldWait(status)) << "it may be in the log";
  }
  // RocksDB refuses writes until one that may wait resumes it.
  EXPECT_TRUE(IsWouldWait(rows_->Put("r", {&cell, 1}, {}).status()));
}

TEST_F(PromptWrites, TheTrimmerTrimsTheLogOfTheirChanges) {
  const std::vector<DatasetSpec> known = {
      spec_, {.name = "kept", .max_versions = 0, .keep_changes_ms = 60'000, .incarnation = 2}};
  const DatasetSpec& kept = known[1];
  ASSERT_OK(backend_->CreateDataset(kept));
  const auto put = [&](uint64_t timestamp) {
    const auto rows = *backend_->OpenRows(kept);
    const PromptScope prompt;
    ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  };
  const auto log = [&] { return backend_->engine().FindFamily(kept.name)->gate.open_change_log(); };
  const auto reopen = [&] {
    rows_.reset();
    backend_.reset();
    Open(known);
  };
  const rocks::ChangePlace begin = log()->Newest();
  put(1);
  ShiftWallClock(2 * 60'000);
  put(2);
  {
    const PromptScope prompt;
    EXPECT_TRUE(IsWouldWait(log()->Trim()));
  }
  EXPECT_EQ(log()->Oldest(), begin) << "nothing was trimmed";
  // The first write of a process trims.
  reopen();
  put(3);
  backend_->engine().trimmer().Drain();
  EXPECT_EQ(log()->Oldest().number, begin.number + 1);
  reopen();
  EXPECT_EQ(log()->Oldest().number, begin.number + 1) << "also on disk";
}

}  // namespace
}  // namespace kvstore::testing
