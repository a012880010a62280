#include "router/router.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backend_api/marker.h"
#include "catalog/file_catalog.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// How the router handles backends that refuse calls because a dataset migrates. A real backend refuses them
/// only during a migration, so these tests use a fake one.
namespace kvstore {
namespace {

using std::chrono::milliseconds;
using testing::FailsWith;
using testing::TempDir;

/// Refuses this many calls because the dataset migrates; then serves.
struct Migrating {
  std::atomic<int> refusals{0};
  std::atomic<int> calls{0};
  bool frozen = false;

  absl::Status Answer() {
    ++calls;
    if (refusals.fetch_sub(1) <= 0) return absl::OkStatus();
    return frozen ? WritesHeldError("held for a moment") : ServedElsewhereError("served elsewhere");
  }
};

/// Two rows; asks its host, which may refuse the call, with each of them, as shards do.
class MigratingScan : public RowScan {
 public:
  MigratingScan(Migrating& migrating, const std::optional<ScanPosition>& after)
      : migrating_(migrating), after_(after) {}
  absl::StatusOr<bool> Next(ScannedRow& row) override {
    if (auto status = migrating_.Answer(); !status.ok()) return status;
    if (given_ == 2) return false;
    row = {.key = std::to_string(given_++), .items = {{"c", {{1, "v"}}}}};
    return true;
  }
  std::optional<ScanPosition> position() const override {
    if (given_ == 0) return after_;
    return ScanPosition{.row = std::to_string(given_ - 1)};
  }

 private:
  Migrating& migrating_;
  const std::optional<ScanPosition> after_;
  int given_ = 0;
};

class MigratingRows : public RowStore {
 public:
  explicit MigratingRows(Migrating& migrating) : migrating_(migrating) {}
  absl::StatusOr<RowPage> Get(std::string_view, const ReadOptions&,
                              const std::optional<RowPosition>&) override {
    if (auto status = migrating_.Answer(); !status.ok()) return status;
    return RowPage{.items = {{"c", {{1, "v"}}}}};
  }
  absl::StatusOr<PutResult> Put(std::string_view, std::span<const CellWrite>, const WriteOptions&) override {
    if (auto status = migrating_.Answer(); !status.ok()) return status;
    return PutResult{};
  }
  absl::Status Delete(std::string_view, const DeleteOptions&) override { return migrating_.Answer(); }
  std::vector<absl::StatusOr<RowPage>> GetMany(std::span<const RowRead> reads) override {
    std::vector<absl::StatusOr<RowPage>> pages;
    for (const RowRead& read : reads) pages.push_back(Get(read.row, read.options, std::nullopt));
    return pages;
  }
  std::vector<absl::StatusOr<PutResult>> PutMany(std::span<const RowWrite> writes) override {
    return std::vector<absl::StatusOr<PutResult>>(writes.size(), PutResult{});
  }
  std::vector<absl::Status> DeleteMany(std::span<const RowDelete> deletes) override {
    return std::vector<absl::Status>(deletes.size());
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t) override { return std::vector<Partition>{}; }
  absl::StatusOr<std::unique_ptr<RowScan>> Scan(const RowRange&, const ScanOptions&,
                                                const std::optional<ScanPosition>& after) override {
    return std::make_unique<MigratingScan>(migrating_, after);
  }

 private:
  Migrating& migrating_;
};

class MigratingBackend : public Backend {
 public:
  explicit MigratingBackend(Migrating& migrating) : migrating_(migrating) {}
  Capabilities capabilities() const override { return {.rows = true}; }
  absl::Status CreateDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::Status AlterDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::Status DropDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec&) override {
    return std::make_shared<MigratingRows>(migrating_);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec&) override {
    return absl::UnimplementedError("not here");
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec&) override {
    return absl::UnimplementedError("not here");
  }
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec&, const Progress&) override {
    return ReclaimResult{};
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec&) override { return DatasetStats{}; }
  void Describe(MetricsSink&) const override {}

 private:
  Migrating& migrating_;
};

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    Router::Backends backends;
    backends.emplace("migrating", std::make_unique<MigratingBackend>(migrating_));
    router_ =
        *Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog.json"), std::move(backends), "migrating");
    EXPECT_OK(router_->CreateDataset({.name = "rows"}));
  }

  const TempDir dir_;
  Migrating migrating_;
  std::unique_ptr<Router> router_;
};

TEST_F(RouterTest, CallsOnADatasetThatMovesAreHeldAndRepeated) {
  for (const bool frozen : {false, true}) {
    migrating_.frozen = frozen;
    migrating_.refusals = 3;
    migrating_.calls = 0;
    EXPECT_EQ(router_->GetRow("rows", "r", {})->items.size(), 1u);
    EXPECT_EQ(migrating_.calls, 4);
    const CellWrite cell{"c", "v", 1};
    migrating_.refusals = 3;
    EXPECT_OK(router_->PutRow("rows", "r", {&cell, 1}, {}));
    migrating_.refusals = 3;
    EXPECT_OK(router_->DeleteRow("rows", "r", {}));
  }
}

TEST_F(RouterTest, AScanWaitsAsLongAsItHasGivenNothing) {
  ASSERT_OK_AND_ASSIGN(const auto cursor, router_->ScanRows("rows", {}, {}));
  migrating_.refusals = 3;
  ScannedRow row;
  EXPECT_TRUE(cursor->Next(row).value());
  EXPECT_EQ(row.key, "0");
  EXPECT_EQ(migrating_.calls, 4);
  // Elsewhere the rows may have another order.
  migrating_.refusals = 1;
  EXPECT_TRUE(IsMigrating(cursor->Next(row).status()));
  EXPECT_TRUE(cursor->Next(row).value());
  EXPECT_EQ(row.key, "1");
  EXPECT_FALSE(cursor->Next(row).value());
}

TEST_F(RouterTest, AScanThatBeginsWithAMarkerWaitsToo) {
  ASSERT_OK_AND_ASSIGN(const auto before, router_->ScanRows("rows", {}, {}));
  ScannedRow row;
  ASSERT_TRUE(before->Next(row).value());
  ASSERT_OK_AND_ASSIGN(const auto cursor, router_->ScanRows("rows", {}, {.marker = before->marker()}));
  migrating_.refusals = 3;
  EXPECT_OK(cursor->Next(row));
  migrating_.refusals = 1;
  EXPECT_TRUE(IsMigrating(cursor->Next(row).status()));
}

TEST_F(RouterTest, OfABatchOnlyWhatWasRefusedIsRepeated) {
  std::vector<RowRead> reads(10, RowRead{"r", {}});
  reads[4].row = "";  // invalid
  migrating_.refusals = 3;
  ASSERT_OK_AND_ASSIGN(const auto rows, router_->GetRows("rows", reads));
  ASSERT_EQ(rows.size(), 10u);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].ok(), i != 4) << i;
  EXPECT_EQ(migrating_.calls, 9 + 3);
}

TEST_F(RouterTest, TheDeadlineEndsTheWait) {
  migrating_.refusals = 1'000'000;
  const CallScope scope(milliseconds(50));
  ASSERT_OK_AND_ASSIGN(const auto cursor, router_->ScanRows("rows", {}, {}));
  ScannedRow row;
  EXPECT_THAT(cursor->Next(row),
              FailsWith(absl::StatusCode::kDeadlineExceeded, "it waited: served elsewhere"));
  EXPECT_THAT(router_->GetRow("rows", "r", {}), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  std::vector<RowRead> reads(2, RowRead{"r", {}});
  const auto rows = router_->GetRows("rows", reads);
  EXPECT_FALSE(rows.ok() && (*rows)[0].ok());
}

TEST_F(RouterTest, WhoWaitedInVainIsToldWhatFor) {
  migrating_.refusals = 1'000'000;
  migrating_.frozen = true;
  std::vector<RowRead> reads(2, RowRead{"r", {}});
  const auto told = FailsWith(absl::StatusCode::kDeadlineExceeded, "it waited: held for a moment");
  {
    const CallScope scope(milliseconds(50));
    EXPECT_THAT(router_->GetRow("rows", "r", {}), told);
  }
  const CallScope scope(milliseconds(50));
  ASSERT_OK_AND_ASSIGN(const auto rows, router_->GetRows("rows", reads));
  for (const auto& row : rows) EXPECT_THAT(row, told);
}

TEST_F(RouterTest, CancellationEndsTheWait) {
  migrating_.refusals = 1'000'000;
  std::atomic<bool> cancelled{false};
  std::thread cancels([&] {
    EXPECT_TRUE(testing::Eventually([&] { return migrating_.calls > 2; }));
    cancelled = true;
  });
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  EXPECT_THAT(router_->GetRow("rows", "r", {}), FailsWith(absl::StatusCode::kCancelled, ""));
  cancels.join();
}

TEST_F(RouterTest, WhoDoesNotWaitIsToldAtOnceWhatMoves) {
  migrating_.refusals = 2;
  const CallScope scope(CallLimits{.waits = false});
  EXPECT_TRUE(IsMigrating(router_->GetRow("rows", "r", {}).status()));
  EXPECT_EQ(migrating_.calls, 1);
  std::vector<RowRead> reads(3, RowRead{"r", {}});
  ASSERT_OK_AND_ASSIGN(const auto rows, router_->GetRows("rows", reads));
  EXPECT_TRUE(IsMigrating(rows[0].status()));
  EXPECT_OK(rows[1]);
  EXPECT_OK(rows[2]);
  EXPECT_EQ(migrating_.calls, 4);
}

TEST_F(RouterTest, ACatalogThatIsInForceAlreadyIsNotWaitedFor) {
  std::shared_ptr<const void> seen;
  EXPECT_FALSE(router_->keeper().WaitForNewCatalog(seen)) << "nothing changed since it was asked";
  EXPECT_NE(seen, nullptr);
}

TEST_F(RouterTest, AMarkerOfAnotherBackendsOrderIsRefused) {
  const uint64_t incarnation = router_->GetDataset("rows")->incarnation;
  const auto scan = [&](const std::string& order) {
    const ScanPosition position{.row = "r", .inside = std::nullopt, .order = order};
    return router_->ScanRows("rows", {}, {.marker = SealScanMarker(incarnation, position)}).status();
  };
  // These markers reach the backend: its own, one of a backend behind it, and one from before markers
  // recorded that.
  for (const char* const order : {"migrating", "migrating/inner", ""}) {
    EXPECT_OK(scan(order)) << order;
  }
  for (const char* const order : {"rocksdb", "migratin", "migrating2", "inner/migrating"}) {
    EXPECT_THAT(scan(order), FailsWith(absl::StatusCode::kFailedPrecondition, "Begin the scan again"))
        << order;
  }
}

TEST_F(RouterTest, DatasetsAreLocatedWithoutACall) {
  const auto where = router_->Locate("rows");
  ASSERT_TRUE(where);
  EXPECT_EQ(where->backend, "migrating");
  EXPECT_FALSE(where->waits);
  EXPECT_FALSE(router_->Locate("none"));
  EXPECT_EQ(router_->keeper().BackendNames(), (std::vector<std::string>{"migrating"}));
}

TEST_F(RouterTest, AnIncarnationThatIsGivenIsKept) {
  ASSERT_OK(router_->CreateDataset({.name = "mine", .incarnation = 77}));
  EXPECT_EQ(router_->GetDataset("mine")->incarnation, 77u);
  // Repeating the create is OK, creating another dataset of that name is not.
  EXPECT_OK(router_->CreateDataset({.name = "mine", .incarnation = 77}));
  EXPECT_THAT(router_->CreateDataset({.name = "mine", .incarnation = 78}),
              FailsWith(absl::StatusCode::kAlreadyExists, "'mine'"));
  EXPECT_THAT(router_->DropDataset("mine", {.incarnation = 78}),
              FailsWith(absl::StatusCode::kNotFound, "of that incarnation"));
  EXPECT_OK(router_->DropDataset("mine", {.incarnation = 77}));
}

}  // namespace
}  // namespace kvstore
