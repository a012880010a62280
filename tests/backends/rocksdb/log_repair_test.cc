#include "backends/rocksdb/engine/log_repair.h"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"

/// One of several logs is damaged: the repaired store ends there, and has no hole.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kLogs = 4;
constexpr int kRowsOfALog = 300;

class LogRepairTest : public ::testing::Test {
 protected:
  /// Makes a store with kLogs logs, each with kRowsOfALog rows of "rows" that are in no table, and closes it
  /// in order.
  void SetUp() override {
    auto backend = OpenRocksDb(store(), {});
    ASSERT_OK(backend);
    ASSERT_OK((*backend)->CreateDataset(rows_));
    ASSERT_OK((*backend)->CreateDataset(other_));
    const auto rows = *(*backend)->OpenRows(rows_);
    const auto other = *(*backend)->OpenRows(other_);
    for (int log = 0; log < kLogs; ++log) {
      for (int i = 0; i < kRowsOfALog; ++i) {
        ASSERT_OK(PutCell(*rows, Row(log * kRowsOfALog + i), "x", std::string(200, 'v'), 1));
      }
      if (log + 1 == kLogs) break;
      // A flush of another dataset begins a new log, and the rows keep the earlier ones.
      ASSERT_OK(PutCell(*other, "r", "x", std::to_string(log), static_cast<uint64_t>(log) + 1));
      const auto handle = (*backend)->engine().FindFamily("other")->handle;
      ASSERT_TRUE((*backend)->engine().db().Flush({}, handle).ok());
    }
    backend->reset();
    for (const auto& file : fs::directory_iterator(store() / "rocksdb")) {
      if (file.path().extension() == ".log" && file.file_size() > 0) logs_.push_back(file.path());
    }
    std::sort(logs_.begin(), logs_.end());
    ASSERT_EQ(logs_.size(), static_cast<size_t>(kLogs));
  }

  fs::path store() const { return dir_ / "s"; }
  static std::string Row(int i) { return "row" + std::to_string(10'000 + i); }

  static void MakeHole(const fs::path& log) {
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(log) / 2));
    file << std::string(4096, '\0');
  }

  absl::StatusOr<std::optional<rocks::LogDamage>> Find() const {
    const auto dir = rocks::DataDir::Open(store(), false);
    if (!dir.ok()) return dir.status();
    return rocks::FindLogDamage(*dir);
  }
  void Repair() const {
    ASSERT_OK_AND_ASSIGN(const auto dir, rocks::DataDir::Open(store(), false));
    ASSERT_OK_AND_ASSIGN(const auto damage, rocks::FindLogDamage(dir));
    ASSERT_TRUE(damage);
    ASSERT_OK(rocks::EndLogsAtDamage(dir, *damage));
  }
  /// Returns how many rows there are, which must be the first ones.
  int RowsFromTheFirst() {
    auto backend = OpenRocksDb(store(), known_);
    EXPECT_OK(backend);
    if (!backend.ok()) return -1;
    const auto rows = *(*backend)->OpenRows(rows_);
    int count = 0;
    while (!Read(*rows, Row(count)).empty()) ++count;
    for (int i = count; i < kLogs * kRowsOfALog; ++i) EXPECT_EQ(Read(*rows, Row(i)), "");
    return count;
  }

  const DatasetSpec rows_{.name = "rows", .incarnation = 1};
  const DatasetSpec other_{.name = "other", .incarnation = 2};
  const std::vector<DatasetSpec> known_ = {rows_, other_};
  const TempDir dir_;
  std::vector<fs::path> logs_;
};

TEST_F(LogRepairTest, WithoutDamageThereIsNothingToDo) {
  ASSERT_OK_AND_ASSIGN(const auto damage, Find());
  EXPECT_FALSE(damage);
  EXPECT_EQ(RowsFromTheFirst(), kLogs * kRowsOfALog);
}

TEST_F(LogRepairTest, AllThatIsBehindAHoleIsLeftOut) {
  MakeHole(logs_[1]);
  EXPECT_THAT(OpenRocksDb(store(), known_), FailsWith(absl::StatusCode::kDataLoss, ""));
  ASSERT_OK_AND_ASSIGN(const auto damage, Find());
  ASSERT_TRUE(damage);
  EXPECT_EQ(damage->log, logs_[1]);
  EXPECT_EQ(damage->later, std::vector<fs::path>(logs_.begin() + 2, logs_.end()));
  EXPECT_GT(damage->changes, 2u * kRowsOfALog);
  EXPECT_GT(damage->left_out, fs::file_size(logs_[2]) + fs::file_size(logs_[3]));
  Repair();
  const int rows = RowsFromTheFirst();
  EXPECT_GT(rows, kRowsOfALog);
  EXPECT_LT(rows, 2 * kRowsOfALog);
}

TEST_F(LogRepairTest, AllThatIsBehindALogThatIsGoneIsLeftOut) {
  fs::remove(logs_[2]);
  EXPECT_THAT(OpenRocksDb(store(), known_), FailsWith(absl::StatusCode::kDataLoss, logs_[2].string()));
  ASSERT_OK_AND_ASSIGN(const auto damage, Find());
  ASSERT_TRUE(damage);
  EXPECT_TRUE(damage->missing);
  EXPECT_EQ(damage->left_out, damage->gone + fs::file_size(logs_[3]));
  Repair();
  EXPECT_EQ(RowsFromTheFirst(), 2 * kRowsOfALog);
}

TEST_F(LogRepairTest, AnEndThatIsGoneAfterACloseIsNoEndThatACrashTore) {
  fs::resize_file(logs_[3], fs::file_size(logs_[3]) * 6 / 10);
  EXPECT_THAT(OpenRocksDb(store(), known_), FailsWith(absl::StatusCode::kDataLoss, logs_[3].string()));
  Repair();
  EXPECT_GT(RowsFromTheFirst(), 3 * kRowsOfALog);
}

// However far an interrupted repair came, the store stays damaged, and the next repair ends at the same
// place.
TEST_F(LogRepairTest, ARepairThatWasCutShortIsDoneAgain) {
  MakeHole(logs_[1]);
  fs::remove(store() / "SEAL.logs");
  fs::create_directories(store() / "left-out" / "first");
  for (size_t moved : {size_t{3}, size_t{2}}) {
    fs::rename(logs_[moved], store() / "left-out" / "first" / logs_[moved].filename());
    EXPECT_THAT(OpenRocksDb(store(), known_), FailsWith(absl::StatusCode::kDataLoss, ""));
  }
  Repair();
  const int rows = RowsFromTheFirst();
  EXPECT_GT(rows, kRowsOfALog);
  EXPECT_LT(rows, 2 * kRowsOfALog);
}

TEST_F(LogRepairTest, WhatIsNewGoesOnBehindTheRepair) {
  MakeHole(logs_[1]);
  Repair();
  const int rows = RowsFromTheFirst();
  {
    ASSERT_OK_AND_ASSIGN(const auto backend, OpenRocksDb(store(), known_));
    ASSERT_OK(PutCell(**backend->OpenRows(rows_), Row(rows), "x", "new", 1));
  }
  EXPECT_EQ(RowsFromTheFirst(), rows + 1);
}

}  // namespace
}  // namespace kvstore::testing
