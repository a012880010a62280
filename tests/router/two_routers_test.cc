#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/outcome.h"
#include "catalog/zookeeper_catalog.h"
#include "kvstore_api/call_scope.h"
#include "router/router.h"
#include "tests/router/tables_backend.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/zookeeper_server.h"

/// Two processes share a catalog in ZooKeeper, and one loses its session in the middle of a change.
namespace kvstore {
namespace {

using absl::StatusCode;
using testing::Eventually;
using testing::FailsWith;
using testing::Tables;
using testing::TablesBackend;
using testing::TcpProxy;
using testing::ZooKeeperServer;

class TwoRoutersTest : public ::testing::Test {
 protected:
  static ZooKeeperServer& Server() {
    static ZooKeeperServer server;
    return server;
  }
  std::unique_ptr<Router> Open(const std::string& servers, TablesBackend::Hooks& hooks) {
    Router::Backends backends;
    backends.emplace("tables", std::make_unique<TablesBackend>(tables_, hooks));
    return *Router::Open(
        std::make_unique<ZooKeeperCatalog>(
            ZooKeeperOptions{.servers = servers, .session_timeout_ms = 2'000, .call_timeout_ms = 4'000},
            root_, "", "test"),
        std::move(backends), "tables");
  }
  /// Cuts `one_` off until its session has ended and the other process has created the dataset again.
  void Overtake() {
    proxy_.Cut();
    absl::Status made;
    EXPECT_TRUE(Eventually([&] {
      two_->keeper().RequestRefresh();
      return (made = two_->CreateDataset({.name = "events"})).ok();
    })) << made;
    drops_ = hooks_one_.drops;
    proxy_.Mend();
    EXPECT_TRUE(Eventually([&] { return one_->keeper().ledger().List().ok(); }));
  }
  void ExpectThatOfTwo() {
    const auto entry = two_->keeper().LoadEntry("events");
    ASSERT_OK(entry.status());
    EXPECT_EQ(entry->state, DatasetState::kActive);
    EXPECT_EQ(entry->spec.incarnation, two_->GetDataset("events")->incarnation);
    EXPECT_EQ(entry->spec.incarnation, tables_.Find("events"));
    EXPECT_EQ(hooks_one_.drops, drops_);
    // The process that was overtaken serves the new dataset.
    EXPECT_TRUE(Eventually([&] {
      const auto spec = one_->GetDataset("events");
      return spec.ok() && spec->incarnation == entry->spec.incarnation;
    }));
  }

  const std::string root_ =
      std::string("/") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  TcpProxy proxy_{Server().port()};
  Tables tables_;
  TablesBackend::Hooks hooks_one_;
  TablesBackend::Hooks hooks_two_;
  std::unique_ptr<Router> one_ = Open(proxy_.address(), hooks_one_);
  std::unique_ptr<Router> two_ = Open(Server().address(), hooks_two_);
  int drops_ = 0;
};

TEST(RouterWithoutZooKeeper, AChangeWaitsNoLongerThanItsCaller) {
  ZooKeeperServer server;
  Tables tables;
  TablesBackend::Hooks hooks;
  Router::Backends backends;
  backends.emplace("tables", std::make_unique<TablesBackend>(tables, hooks));
  const auto router =
      *Router::Open(std::make_unique<ZooKeeperCatalog>(ZooKeeperOptions{.servers = server.address(),
                                                                        .session_timeout_ms = 1'000,
                                                                        .call_timeout_ms = 600'000},
                                                       "/root", "", "test"),
                    std::move(backends), "tables");
  ASSERT_OK(router->CreateDataset({.name = "before"}));
  server.Stop();
  // One call waits for ZooKeeper; the others, and the thread that follows the catalog, wait for that one.
  router->keeper().RequestRefresh();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&router, i] {
      const CallScope scope(std::chrono::milliseconds(200));
      const absl::Status status = i == 0   ? router->CreateDataset({.name = "events"})
                                  : i == 1 ? router->AlterDataset("before", {.max_versions = 3})
                                           : router->DropDataset("before", {});
      const std::string why(status.message());
      EXPECT_TRUE(why.find("ZooKeeper at ") != std::string::npos ||
                  why.find("while it waited for the catalog of datasets") != std::string::npos)
          << status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  server.Start();
  EXPECT_TRUE(Eventually([&] { return router->CreateDataset({.name = "after"}).ok(); }));
}

TEST_F(TwoRoutersTest, ADropThatWasFinishedByAnotherLeavesTheNextDatasetAlone) {
  ASSERT_OK(one_->CreateDataset({.name = "events"}));
  hooks_one_.drop = [&] {
    Overtake();
    return absl::OkStatus();
  };
  const absl::Status dropped = one_->DropDataset("events", {});
  EXPECT_THAT(dropped, FailsWith(StatusCode::kUnavailable, "another process took that for abandoned"));
  EXPECT_TRUE(IsInDoubt(dropped));
  ExpectThatOfTwo();
}

TEST_F(TwoRoutersTest, ACreateThatWasUndoneByAnotherDoesNotReplaceTheNextDataset) {
  hooks_one_.create = [&] {
    Overtake();
    return absl::OkStatus();
  };
  const absl::Status created = one_->CreateDataset({.name = "events"});
  EXPECT_THAT(created, FailsWith(StatusCode::kUnavailable, "another process may have undone it"));
  EXPECT_TRUE(IsInDoubt(created));
  ExpectThatOfTwo();
}

TEST_F(TwoRoutersTest, ACreateThatFailsAfterItWasUndoneByAnotherCleansNothingUp) {
  hooks_one_.create = [&] {
    Overtake();
    return absl::UnavailableError("a host is down");
  };
  EXPECT_THAT(one_->CreateDataset({.name = "events"}), FailsWith(StatusCode::kUnavailable, "a host is down"));
  ExpectThatOfTwo();
}

TEST_F(TwoRoutersTest, ACreateWhoseOperationWasTakenAwayIsNotDone) {
  hooks_one_.create = [&] {
    const auto all = two_->keeper().ledger().List();
    return all.ok() ? two_->keeper().ledger().Release(all->front().id, /*force=*/true).status()
                    : all.status();
  };
  const absl::Status created = one_->CreateDataset({.name = "events"});
  EXPECT_THAT(created, FailsWith(StatusCode::kUnavailable, "kv dataset show events"));
  EXPECT_TRUE(IsInDoubt(created));
  EXPECT_THAT(two_->keeper().LoadEntry("events").status(), FailsWith(StatusCode::kNotFound, ""));
}

TEST_F(TwoRoutersTest, WhatOneIsAtTheOtherDoesNotCross) {
  ASSERT_OK(one_->CreateDataset({.name = "events"}));
  ASSERT_TRUE(Eventually([&] { return two_->GetDataset("events").ok(); }));
  const DatasetSpec here = *one_->GetDataset("events");
  DatasetSpec there = here;
  there.backend = "elsewhere";
  ASSERT_OK_AND_ASSIGN(const Held migration,
                       one_->keeper().ledger().Begin(one_->keeper().MigrationOf(here, there)));
  // The migration is created but not started, so the dataset's entry does not show it.
  for (Router* router : {one_.get(), two_.get()}) {
    const absl::Status dropped = router->DropDataset("events", {});
    EXPECT_THAT(dropped, FailsWith(StatusCode::kFailedPrecondition, "'migrate dataset events', of "));
    EXPECT_THAT(dropped, FailsWith(StatusCode::kFailedPrecondition, "kv migrate cancel events"));
    EXPECT_THAT(router->AlterDataset("events", {.max_versions = 3}),
                FailsWith(StatusCode::kFailedPrecondition, "kv migrate cancel events"));
    EXPECT_OK(router->AlterDataset("events", {.max_versions = 1})) << "changes nothing";
    EXPECT_THAT(router->keeper().ledger().Begin(router->keeper().MigrationOf(there, here)).status(),
                absl::OkStatus())
        << "the same one, gone on with";
  }
  EXPECT_OK(two_->CreateDataset({.name = "others"}));
  // Shards cannot be opened during a migration or a create.
  ZooKeeperLedger fleet({.servers = Server().address()}, root_);
  const Operation open = {.what = "open shards",
                          .claims = {Claim::Shards(ShardSpace::kMod, 8, 9, ClaimMode::kExclusive)}};
  EXPECT_THAT(fleet.Begin(open), FailsWith(StatusCode::kFailedPrecondition, "migrate dataset"));
  ASSERT_OK(two_->keeper().ledger().EndLasting(two_->keeper().MigrationOf(here, there).what));
  hooks_two_.create = [&] { return fleet.Begin(open).status(); };
  EXPECT_THAT(
      two_->CreateDataset({.name = "new"}),
      FailsWith(StatusCode::kFailedPrecondition, "open shards: cannot begin now: 'create dataset new'"));
  ASSERT_OK_AND_ASSIGN(const Held opening, fleet.Begin(open));
  EXPECT_THAT(
      one_->CreateDataset({.name = "new"}),
      FailsWith(StatusCode::kFailedPrecondition, "create dataset new: cannot begin now: 'open shards'"));
  EXPECT_THAT(one_->DropDataset("events", {}), FailsWith(StatusCode::kFailedPrecondition, "'open shards'"));
}

TEST_F(TwoRoutersTest, AnAlterTakesNoSettingsBackThatAreNotInForceHere) {
  // As on a full disk.
  hooks_one_.alter = [] { return absl::UnavailableError("the settings cannot be stored"); };
  ASSERT_OK(one_->CreateDataset({.name = "events"}));
  ASSERT_TRUE(Eventually([&] { return two_->GetDataset("events").ok(); }));
  ASSERT_OK(two_->AlterDataset("events", {.max_versions = 7}));
  EXPECT_THAT(one_->AlterDataset("events", {.ttl_ms = 60'000}),
              FailsWith(StatusCode::kUnavailable, "the settings cannot be stored"));
  ASSERT_OK_AND_ASSIGN(const CatalogEntry entry, two_->keeper().LoadEntry("events"));
  EXPECT_EQ(entry.spec.max_versions, 7u);
  EXPECT_EQ(entry.spec.ttl_ms, 60'000u);
}

TEST_F(TwoRoutersTest, ADatasetWithAMigrationOnRecordIsNotDroppedOrAltered) {
  ASSERT_OK(one_->CreateDataset({.name = "events"}));
  // The state that a version without a ledger has left.
  ASSERT_OK(one_->keeper().WithCatalog(
      [](Catalog& catalog) { return catalog.PutRecord("events", "{}", -1).status(); }));
  EXPECT_THAT(one_->DropDataset("events", {}),
              FailsWith(StatusCode::kFailedPrecondition, "kv migrate cancel events"));
  EXPECT_THAT(one_->AlterDataset("events", {.max_versions = 3}),
              FailsWith(StatusCode::kFailedPrecondition, "kv migrate cancel events"));
}

TEST_F(TwoRoutersTest, APurgeGivesWayToADropThroughTheOther) {
  ASSERT_OK(one_->CreateDataset({.name = "events"}));
  ASSERT_TRUE(Eventually([&] { return two_->GetDataset("events").ok(); }));
  std::atomic<bool> runs{false};
  absl::Status purged;
  std::thread purge([&] {
    purged = one_->Compact("events",
                           [&](uint64_t, uint64_t) {
                             runs = true;
                             return true;
                           })
                 .status();
  });
  EXPECT_TRUE(Eventually([&] { return runs.load(); }));
  EXPECT_OK(two_->DropDataset("events", {}));
  purge.join();
  EXPECT_THAT(purged, FailsWith(StatusCode::kAborted, "is being dropped or altered by somebody else"));
}

TEST_F(TwoRoutersTest, AnEntryThatCannotBeReadHidesNoOtherDataset) {
  ASSERT_OK(one_->CreateDataset({.name = "bad"}));
  ASSERT_OK(one_->CreateDataset({.name = "good"}));
  ZooKeeper zookeeper({.servers = Server().address()}, nullptr);
  const std::string path = root_ + "/datasets/bad";
  ASSERT_OK_AND_ASSIGN(const ZooKeeperNode whole, zookeeper.Get(path, /*watch=*/false));
  ASSERT_OK(zookeeper.Set(path, "{", -1));
  // A process that begins now refuses that dataset by name, and has the others.
  TablesBackend::Hooks hooks;
  const auto third = Open(Server().address(), hooks);
  EXPECT_OK(third->GetDataset("good"));
  EXPECT_OK(third->GetStats("good"));
  EXPECT_THAT(third->GetDataset("bad"), FailsWith(StatusCode::kDataLoss, path));
  EXPECT_THAT(third->GetStats("bad"),
              FailsWith(StatusCode::kDataLoss, "the catalog's entry of 'bad' cannot be read"));
  EXPECT_THAT(third->GetRow("bad", "r", {}), FailsWith(StatusCode::kDataLoss, path));
  ASSERT_OK_AND_ASSIGN(const auto list, third->ListDatasets());
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "bad");
  EXPECT_EQ(list[0].backend, "") << "nothing is known of it";
  EXPECT_EQ(list[1].backend, "tables");
  // Nothing is done to it, and a migration does not take it for dropped.
  EXPECT_THAT(third->DropDataset("bad", {}), FailsWith(StatusCode::kDataLoss, path));
  EXPECT_THAT(third->AlterDataset("bad", {.max_versions = 3}), FailsWith(StatusCode::kDataLoss, path));
  EXPECT_THAT(third->keeper().LoadEntry("bad"), FailsWith(StatusCode::kDataLoss, path));
  // A type number could be given twice.
  for (const char* const name : {"bad", "new"}) {
    EXPECT_THAT(third->CreateDataset({.name = name}),
                FailsWith(StatusCode::kFailedPrecondition, "type number could be given twice"));
  }
  EXPECT_OK(third->AlterDataset("good", {.max_versions = 3}));
  // A process that has the dataset open serves it as before, as when ZooKeeper is away, but does not alter
  // it.
  ASSERT_OK(one_->keeper().RefreshNow());
  EXPECT_OK(one_->GetStats("bad"));
  EXPECT_THAT(one_->AlterDataset("bad", {.max_versions = 3}), FailsWith(StatusCode::kDataLoss, path));
  // The entry is restored.
  ASSERT_OK(zookeeper.Set(path, whole.data, -1));
  ASSERT_OK(third->keeper().RefreshNow());
  EXPECT_OK(third->GetStats("bad"));
  EXPECT_OK(third->CreateDataset({.name = "new"}));
  // Or it is dropped, by removing the node.
  ASSERT_OK(zookeeper.Set(path, "{", -1));
  ASSERT_OK(zookeeper.Delete(path));
  ASSERT_OK(third->keeper().RefreshNow());
  EXPECT_THAT(third->GetDataset("bad"), FailsWith(StatusCode::kNotFound, "'bad'"));
  EXPECT_OK(third->CreateDataset({.name = "newer"}));
}

}  // namespace
}  // namespace kvstore
