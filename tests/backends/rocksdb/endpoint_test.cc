#include "backends/rocksdb/units/endpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/unit_key.h"
#include "base/hash.h"
#include "tests/backend_suite/suite.h"
#include "tests/backends/rocksdb/under_test.h"

/// Migrations to and from this backend, beyond the suite that every backend passes.
namespace kvstore::testing {
namespace {

class RocksEndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenRocksDb(dir_.path(), {});
    ASSERT_OK(opened);
    backend_ = *std::move(opened);
  }

  const TempDir dir_;
  std::unique_ptr<RocksDbBackend> backend_;
  const DatasetSpec spec_{.name = "rows", .max_versions = 2, .incarnation = 7};
};

TEST_F(RocksEndpointTest, ARemovalThatFailedIsTriedAgain) {
  ASSERT_OK_AND_ASSIGN(const auto endpoint, backend_->OpenForMigration(spec_));
  ASSERT_OK(endpoint->RaiseEpoch(1));
  ASSERT_OK(endpoint->TransitionTo(1, EndpointState::kImporting, false));
  const Unit unit{RowUnitKey("r", "x"), {{5, "v"}}};
  ASSERT_OK(endpoint->Replace(1, {&unit, 1}, true));
  {
    const NoFileGrows full;
    EXPECT_FALSE(endpoint->TransitionTo(1, EndpointState::kAbsent, false).ok());
  }
  // The same worker may retry, or the next one.
  EXPECT_OK(endpoint->RaiseEpoch(2));
  EXPECT_OK(endpoint->TransitionTo(2, EndpointState::kAbsent, false));
  ASSERT_OK_AND_ASSIGN(const EndpointStatus status, endpoint->Status());
  EXPECT_TRUE(status.partitions.contains(EndpointState::kAbsent));
  EXPECT_EQ(backend_->engine().FindFamily("rows"), nullptr);
}

TEST_F(RocksEndpointTest, ReplaceWaitsForATrimOfTheRow) {
  ASSERT_OK_AND_ASSIGN(const auto endpoint, backend_->OpenForMigration(spec_));
  ASSERT_OK(endpoint->RaiseEpoch(1));
  ASSERT_OK(endpoint->TransitionTo(1, EndpointState::kImporting, false));
  std::atomic<bool> replaced{false};
  std::thread worker;
  {
    // Hold the lock that the trimmer holds between reading and deleting.
    const auto trim = backend_->engine().locks().Exclude(Fnv1a(std::string_view("r"), spec_.incarnation));
    worker = std::thread([&] {
      const std::vector<Unit> units = {{RowUnitKey("another", "x"), {{5, "v"}}},
                                       {RowUnitKey("r", "x"), {{5, "v"}}}};
      EXPECT_OK(endpoint->Replace(1, units, false));
      replaced = true;
    });
    // Leave enough time for a replace that does not wait.
    for (int i = 0; i < 100 && !replaced; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_FALSE(replaced);
  }
  worker.join();
  EXPECT_TRUE(replaced);
}

TEST_F(RocksEndpointTest, WhatAnEarlierDatasetHasLeftIsNotTheNewOnes) {
  ASSERT_OK(backend_->CreateDataset(spec_));
  ASSERT_OK(PutCell(**backend_->OpenRows(spec_), "r", "x", "old", 5));
  // The drop failed, and nothing refers to the dataset any more.
  DatasetSpec next = spec_;
  next.incarnation = 8;
  next.max_versions = 0;
  ASSERT_OK(backend_->CreateDataset(next));
  const auto rows = *backend_->OpenRows(next);
  EXPECT_EQ(Read(*rows, "r"), "");
  for (const uint64_t timestamp : {1, 2, 3}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@3=v x@2=v x@1=v");
  // A second create leaves it as it is.
  ASSERT_OK(backend_->CreateDataset(next));
  EXPECT_EQ(Read(*rows, "r"), "x@3=v");
}

TEST_F(RocksEndpointTest, ASnapshotOfUnitsKeepsOneOfTheEngine) {
  ASSERT_OK(backend_->CreateDataset(spec_));
  ASSERT_OK_AND_ASSIGN(const auto reader, backend_->OpenUnits(spec_));
  const auto taken = [&] {
    uint64_t count = 0;
    EXPECT_TRUE(backend_->engine().db().GetIntProperty(rocksdb::DB::Properties::kNumSnapshots, &count));
    return count;
  };
  EXPECT_EQ(taken(), 0u);
  ASSERT_OK_AND_ASSIGN(auto snapshot, reader->Snapshot(std::chrono::seconds(60)));
  EXPECT_EQ(taken(), 1u);
  snapshot.reset();
  EXPECT_EQ(taken(), 0u);
}

}  // namespace
}  // namespace kvstore::testing
