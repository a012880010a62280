#include <gmock/gmock.h>

#include "tests/backend_suite/suite.h"

namespace kvstore::testing {
namespace {

TEST_P(DatasetsSuite, CreatingAndDroppingMayBeRepeated) {
  const auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "r", "x", "v", 1));
  ASSERT_OK(backend().CreateDataset(spec()));
  EXPECT_EQ(Read(**backend().OpenRows(spec()), "r"), "x@1=v");
  ASSERT_OK(backend().DropDataset(spec()));
  ASSERT_OK(backend().DropDataset(spec()));
}

TEST_P(DatasetsSuite, ADatasetOfTheSameNameStartsEmpty) {
  ASSERT_OK(PutCell(*Rows(), "r", "x", "v", 1));
  ASSERT_OK(backend().DropDataset(spec()));
  EXPECT_EQ(Read(*Rows(), "r"), "");
}

TEST_P(DatasetsSuite, StoresOfADroppedDatasetFailAndDoNotCrash) {
  const auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "r", "x", "v", 1));
  ASSERT_OK(backend().DropDataset(spec()));
  EXPECT_FALSE(PutCell(*rows, "r", "x", "v", 2).ok());
  EXPECT_FALSE(rows->Delete("r", {}).ok());
  rows->Get("r", {}, std::nullopt).status().IgnoreError();
}

TEST_P(DatasetsSuite, DataAndSettingsSurviveARestart) {
  {
    const auto rows = Rows(2);
    for (const uint64_t timestamp : {1, 2, 3}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
    Alter({.max_versions = 1});
  }
  Reopen();
  EXPECT_EQ(Read(**backend().OpenRows(spec()), "r", {.versions = 9}), "x@3=v");
}

TEST_P(DatasetsSuite, OpeningAgainPutsTheSettingsInForce) {
  if (GetParam().name.find("Remote") != std::string::npos) {
    GTEST_SKIP() << "a server has the settings of its own catalog, which all that share it alter together";
  }
  // As if the dataset had been altered without this backend, on the other side of a migration.
  const auto before = Rows(/*max_versions=*/1);
  for (const uint64_t timestamp : {1, 2}) ASSERT_OK(PutCell(*before, "r", "x", "v", timestamp));
  DatasetSpec altered = spec();
  altered.max_versions = 5;
  ASSERT_OK_AND_ASSIGN(const auto after, backend().OpenRows(altered));
  for (const uint64_t timestamp : {3, 4}) ASSERT_OK(PutCell(*after, "r", "x", "v", timestamp));
  EXPECT_THAT(Read(*after, "r", {.versions = 9}), ::testing::StartsWith("x@4=v x@3=v x@2=v"));
  ASSERT_OK(backend().Reclaim(altered, nullptr));
  EXPECT_THAT(Read(*after, "r", {.versions = 9}), ::testing::StartsWith("x@4=v x@3=v x@2=v"));
  // Other settings that hide cells, too.
  altered.max_versions = 0;
  altered.ttl_ms = 1;
  ASSERT_OK_AND_ASSIGN(const auto expiring, backend().OpenRows(altered));
  EXPECT_EQ(Read(*expiring, "r", {.versions = 9}), "");
}

TEST_P(DatasetsSuite, SettingsThatAnotherProcessChangedAreTakenNoteOf) {
  const auto rows = Rows(/*max_versions=*/1);
  DatasetSpec altered = spec();
  altered.max_versions = 2;
  ASSERT_OK(backend().NoteSettings(altered));
  for (const uint64_t timestamp : {1, 2, 3}) ASSERT_OK(PutCell(*rows, "r", "x", "v", timestamp));
  EXPECT_EQ(Read(*rows, "r", {.versions = 9}), "x@3=v x@2=v");
}

TEST_P(DatasetsSuite, DataThatIsNotThereIsLost) {
  const DatasetSpec missing{.name = "missing", .incarnation = 99};
  EXPECT_THAT(backend().OpenRows(missing), FailsWith(absl::StatusCode::kDataLoss, "missing"));
  EXPECT_THAT(backend().AlterDataset(missing), FailsWith(absl::StatusCode::kDataLoss, "missing"));
  EXPECT_THAT(backend().Reclaim(missing, nullptr), FailsWith(absl::StatusCode::kDataLoss, "missing"));
  EXPECT_THAT(backend().Stats(missing), FailsWith(absl::StatusCode::kDataLoss, "missing"));
}

TEST_P(DatasetsSuite, StatsGrowWithTheData) {
  const auto rows = Rows();
  ASSERT_OK_AND_ASSIGN(const DatasetStats before, backend().Stats(spec()));
  for (int i = 0; i < 100; ++i)
    ASSERT_OK(PutCell(*rows, "r" + std::to_string(i), "x", std::string(20'000, 'v'), 1));
  // Some engines count only what is in files.
  Random random(Seed("stats"));
  for (int i = 0; i < 10; ++i) GetParam().disturb(backend(), spec(), random);
  ASSERT_OK_AND_ASSIGN(const DatasetStats after, backend().Stats(spec()));
  EXPECT_GT(after.approximate_bytes, before.approximate_bytes);
  EXPECT_GT(after.approximate_entries, before.approximate_entries);
}

}  // namespace
}  // namespace kvstore::testing
