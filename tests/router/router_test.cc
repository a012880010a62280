#include "kvstore_api/router.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kvstore_api/file_catalog.h"
#include "kvstore_api/marker.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// What the router does with backends that refuse calls because a dataset moves. A real one refuses only
/// during a migration, so this one is made up.
namespace kvstore {
namespace {

using std::chrono::milliseconds;
using testing::FailsWith;
using testing::TempDir;

/// Says so many times that it moves; then all is well.
struct Moving {
  std::atomic<int> refusals{0};
  std::atomic<int> calls{0};
  bool frozen = false;

  absl::Status Answer() {
    ++calls;
    if (refusals.fetch_sub(1) <= 0) return absl::OkStatus();
    return frozen ? FrozenError("held for a moment") : MovedError("served elsewhere");
  }
};

class MovingRows : public RowStore {
 public:
  explicit MovingRows(Moving& moving) : moving_(moving) {}
  absl::StatusOr<RowPage> Get(std::string_view, const ReadOptions&,
                              const std::optional<RowPosition>&) override {
    if (auto status = moving_.Answer(); !status.ok()) return status;
    return RowPage{.items = {{"c", {{1, "v"}}}}};
  }
  absl::StatusOr<PutResult> Put(std::string_view, std::span<const CellWrite>, const WriteOptions&) override {
    if (auto status = moving_.Answer(); !status.ok()) return status;
    return PutResult{};
  }
  absl::Status Delete(std::string_view, const DeleteOptions&) override { return moving_.Answer(); }
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
                                                const std::optional<ScanPosition>&) override {
    return absl::UnimplementedError("not here");
  }

 private:
  Moving& moving_;
};

class MovingBackend : public Backend {
 public:
  explicit MovingBackend(Moving& moving) : moving_(moving) {}
  Capabilities capabilities() const override { return {.rows = true}; }
  absl::Status CreateDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::Status AlterDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::Status DropDataset(const DatasetSpec&) override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec&) override {
    return std::make_shared<MovingRows>(moving_);
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
  Moving& moving_;
};

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    Router::Backends backends;
    backends.emplace("moving", std::make_unique<MovingBackend>(moving_));
    router_ =
        *Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog.json"), std::move(backends), "moving");
    EXPECT_OK(router_->CreateDataset({.name = "rows"}));
  }

  const TempDir dir_;
  Moving moving_;
  std::unique_ptr<Router> router_;
};

TEST_F(RouterTest, CallsOnADatasetThatMovesAreHeldAndRepeated) {
  for (const bool frozen : {false, true}) {
    moving_.frozen = frozen;
    moving_.refusals = 3;
    moving_.calls = 0;
    EXPECT_EQ(router_->GetRow("rows", "r", {})->items.size(), 1u);
    EXPECT_EQ(moving_.calls, 4);
    const CellWrite cell{"c", "v", 1};
    moving_.refusals = 3;
    EXPECT_OK(router_->PutRow("rows", "r", {&cell, 1}, {}));
    moving_.refusals = 3;
    EXPECT_OK(router_->DeleteRow("rows", "r", {}));
  }
}

TEST_F(RouterTest, OfABatchOnlyWhatWasRefusedIsRepeated) {
  std::vector<RowRead> reads(10, RowRead{"r", {}});
  reads[4].row = "";  // invalid
  moving_.refusals = 3;
  ASSERT_OK_AND_ASSIGN(const auto rows, router_->GetRows("rows", reads));
  ASSERT_EQ(rows.size(), 10u);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].ok(), i != 4) << i;
  EXPECT_EQ(moving_.calls, 9 + 3);
}

TEST_F(RouterTest, TheDeadlineEndsTheWait) {
  moving_.refusals = 1'000'000;
  const CallScope scope(milliseconds(50));
  EXPECT_THAT(router_->GetRow("rows", "r", {}), FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  std::vector<RowRead> reads(2, RowRead{"r", {}});
  const auto rows = router_->GetRows("rows", reads);
  EXPECT_FALSE(rows.ok() && (*rows)[0].ok());
}

TEST_F(RouterTest, CancellationEndsTheWait) {
  moving_.refusals = 1'000'000;
  std::atomic<bool> cancelled{false};
  std::thread cancels([&] {
    EXPECT_TRUE(testing::Eventually([&] { return moving_.calls > 2; }));
    cancelled = true;
  });
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  EXPECT_THAT(router_->GetRow("rows", "r", {}), FailsWith(absl::StatusCode::kCancelled, ""));
  cancels.join();
}

TEST_F(RouterTest, WhoDoesNotWaitIsToldAtOnceWhatMoves) {
  moving_.refusals = 2;
  const CallScope scope(CallLimits{.waits = false});
  EXPECT_TRUE(IsMoving(router_->GetRow("rows", "r", {}).status()));
  EXPECT_EQ(moving_.calls, 1);
  std::vector<RowRead> reads(3, RowRead{"r", {}});
  ASSERT_OK_AND_ASSIGN(const auto rows, router_->GetRows("rows", reads));
  EXPECT_TRUE(IsMoving(rows[0].status()));
  EXPECT_OK(rows[1]);
  EXPECT_OK(rows[2]);
  EXPECT_EQ(moving_.calls, 4);
}

TEST_F(RouterTest, ACatalogThatIsInForceAlreadyIsNotWaitedFor) {
  std::shared_ptr<const void> seen;
  EXPECT_FALSE(router_->AwaitCatalog(seen)) << "nothing changed since it was asked";
  EXPECT_NE(seen, nullptr);
}

TEST_F(RouterTest, AMarkerOfAnotherBackendsOrderIsRefused) {
  const uint64_t incarnation = router_->GetDataset("rows")->incarnation;
  const auto scan = [&](const std::string& order) {
    const ScanPosition position{.row = "r", .inside = std::nullopt, .order = order};
    return router_->ScanRows("rows", {}, {.marker = SealScanMarker(incarnation, position)}).status();
  };
  // These get as far as the backend: of its own, of one behind it, and of before markers said so.
  for (const char* const order : {"moving", "moving/inner", ""}) {
    EXPECT_THAT(scan(order), FailsWith(absl::StatusCode::kUnimplemented, "not here")) << order;
  }
  for (const char* const order : {"rocksdb", "movin", "moving2", "inner/moving"}) {
    EXPECT_THAT(scan(order), FailsWith(absl::StatusCode::kFailedPrecondition, "Begin the scan again"))
        << order;
  }
}

TEST_F(RouterTest, DatasetsAreLocatedWithoutACall) {
  const auto where = router_->Locate("rows");
  ASSERT_TRUE(where);
  EXPECT_EQ(where->backend, "moving");
  EXPECT_FALSE(where->waits);
  EXPECT_FALSE(router_->Locate("none"));
  EXPECT_EQ(router_->BackendNames(), (std::vector<std::string>{"moving"}));
}

TEST_F(RouterTest, AnIncarnationThatIsGivenIsKept) {
  ASSERT_OK(router_->CreateDataset({.name = "mine", .incarnation = 77}));
  EXPECT_EQ(router_->GetDataset("mine")->incarnation, 77u);
  // Once more is OK, another one is not.
  EXPECT_OK(router_->CreateDataset({.name = "mine", .incarnation = 77}));
  EXPECT_THAT(router_->CreateDataset({.name = "mine", .incarnation = 78}),
              FailsWith(absl::StatusCode::kAlreadyExists, "'mine'"));
  EXPECT_THAT(router_->DropDataset("mine", {.incarnation = 78}),
              FailsWith(absl::StatusCode::kNotFound, "of that incarnation"));
  EXPECT_OK(router_->DropDataset("mine", {.incarnation = 77}));
}

}  // namespace
}  // namespace kvstore
