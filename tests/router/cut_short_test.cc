#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "backend_api/outcome.h"
#include "catalog/file_catalog.h"
#include "router/router.h"
#include "tests/router/tables_backend.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Creates and drops that fail halfway, in a store that shares its catalog with nobody: no other process
/// finishes them, and this one is not started again.
namespace kvstore::testing {
namespace {

using absl::StatusCode;

class CutShortTest : public ::testing::Test {
 protected:
  CutShortTest() {
    Router::Backends backends;
    backends.emplace("tables", std::make_unique<TablesBackend>(tables_, hooks_));
    router_ =
        *Router::Open(std::make_unique<FileCatalog>(dir_ / "catalog.json"), std::move(backends), "tables");
  }

  void SetHostDown(bool down) {
    const auto answer = [down] { return down ? absl::UnavailableError("a host is down") : absl::OkStatus(); };
    hooks_.create = answer;
    hooks_.drop = answer;
  }
  /// Leaves a create that could be neither completed nor undone.
  void CutCreateShort() {
    SetHostDown(true);
    EXPECT_THAT(router_->CreateDataset({.name = "events"}),
                FailsWith(StatusCode::kUnavailable, "a host is down"));
    EXPECT_NE(hooks_.drops, 0) << "nobody tried to undo it";
  }

  const TempDir dir_;
  Tables tables_;
  TablesBackend::Hooks hooks_;
  std::unique_ptr<Router> router_;
};

TEST_F(CutShortTest, ANameWhoseCreateCouldNotBeUndoneIsCreatedAgain) {
  CutCreateShort();
  EXPECT_THAT(router_->CreateDataset({.name = "events"}),
              FailsWith(StatusCode::kUnavailable, "that was cut short has left must be removed first"));
  SetHostDown(false);
  ASSERT_OK(router_->CreateDataset({.name = "events"}));
  EXPECT_EQ(tables_.Find("events"), router_->GetDataset("events")->incarnation);
  EXPECT_OK(router_->keeper().LoadEntry("events"));
}

TEST_F(CutShortTest, ACreateThatIsRepeatedByItsIncarnationIsNotDroppedAtTheNextStart) {
  CutCreateShort();
  uint64_t incarnation = 0;
  ASSERT_OK(router_->keeper().WithCatalog([&](Catalog& catalog) {
    incarnation = catalog.Load()->entries.at(0).spec.incarnation;
    return absl::OkStatus();
  }));
  SetHostDown(false);
  ASSERT_OK(router_->CreateDataset({.name = "events", .incarnation = incarnation}));
  EXPECT_OK(router_->keeper().LoadEntry("events")) << "its entry is active";
}

TEST_F(CutShortTest, ACreateThatCouldNotBeUndoneIsDropped) {
  CutCreateShort();
  const absl::Status dropped = router_->DropDataset("events", {});
  EXPECT_THAT(dropped, FailsWith(StatusCode::kUnavailable, "a host is down"));
  EXPECT_TRUE(IsInDoubt(dropped));
  SetHostDown(false);
  ASSERT_OK(router_->DropDataset("events", {}));
  EXPECT_EQ(tables_.Find("events"), 0u);
  EXPECT_THAT(router_->DropDataset("events", {}), FailsWith(StatusCode::kNotFound, "there is none"));
}

TEST_F(CutShortTest, ADropThatFailedIsFinishedWhenItIsAskedForAgain) {
  ASSERT_OK(router_->CreateDataset({.name = "events"}));
  SetHostDown(true);
  for (int i = 0; i < 2; ++i) {
    const absl::Status dropped = router_->DropDataset("events", {});
    EXPECT_THAT(dropped, FailsWith(StatusCode::kUnavailable, "a host is down"));
    EXPECT_TRUE(IsInDoubt(dropped));
    EXPECT_THAT(router_->GetDataset("events"), FailsWith(StatusCode::kNotFound, ""));
  }
  SetHostDown(false);
  const int drops = hooks_.drops;
  ASSERT_OK(router_->DropDataset("events", {}));
  EXPECT_GT(hooks_.drops, drops) << "the backend was not asked";
  EXPECT_THAT(router_->DropDataset("events", {}), FailsWith(StatusCode::kNotFound, "there is none"));
}

}  // namespace
}  // namespace kvstore::testing
