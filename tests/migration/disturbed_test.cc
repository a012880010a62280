#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "backend_api/forwarding_endpoint.h"
#include "base/fail_point.h"
#include "tests/migration/migrating_store.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// While a dataset migrates there and back under load, another component dies at a named step, and comes
/// back.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

enum class Trouble { kServerKilled, kServerPromoted, kCatalogDown, kCatalogAnswersLost };

struct Case {
  Trouble trouble;
  const char* point;
  int occurrence;  ///< Which time the point is reached.
};

/// Two masters; the first has a replica which, if it is semi-synchronous, has what the first has
/// acknowledged.
class Pair {
 public:
  explicit Pair(bool semi_sync) : masters_(Arguments(1)), replica_(Arguments(2)) {
    if (semi_sync) {
      masters_.server(0).Run(
          "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC', rpl_semi_sync_master_timeout = 60000, "
          "rpl_semi_sync_master_enabled = ON");
    }
    replica_.Run(
        fmt::format("SET GLOBAL rpl_semi_sync_slave_enabled = ON; CHANGE MASTER TO MASTER_HOST = "
                    "'127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos; "
                    "START SLAVE",
                    masters_.server(0).port()));
    EXPECT_TRUE(Eventually([&] {
      return !semi_sync ||
             masters_.server(0).Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1\n");
    }));
    masters_.Clear();
  }
  TestFleet& fleet() { return masters_; }
  void KillMaster() { masters_.server(0).Kill(); }
  /// Waits until the replica has received everything, and then stops its replication.
  void CutOff() {
    const std::string position = masters_.server(0).Run("SELECT @@gtid_binlog_pos");
    EXPECT_EQ(replica_.Run("SELECT MASTER_GTID_WAIT('" + position.substr(0, position.find('\n')) + "', 20)"),
              "0\n");
    replica_.Run("STOP SLAVE IO_THREAD");
  }
  /// Promotes the replica as an operator does: it applies everything it has received, and then the map names
  /// it.
  void Promote() {
    replica_.Run("STOP SLAVE IO_THREAD");
    EXPECT_TRUE(Eventually([&] {
      return replica_.Run("SHOW SLAVE STATUS").find("Slave has read all relay log") != std::string::npos;
    }));
    replica_.Run("STOP SLAVE; RESET SLAVE ALL");
    masters_.WriteMaps(replica_.address(), masters_.server(1).address());
  }

 private:
  static std::vector<std::string> Arguments(int id) {
    return {"--plugin-maturity=unknown", "--plugin-load-add=ha_rocksdb", "--rocksdb-large-prefix=1",
            "--log-bin=binlog",          "--gtid-strict-mode=ON",        fmt::format("--server-id={}", id)};
  }

  TestFleet masters_;
  MariaDbServer replica_;
};

class DisturbedTest : public ::testing::TestWithParam<Case> {
 protected:
  void Begin() {
    switch (GetParam().trouble) {
      case Trouble::kServerKilled:
        return SharedFleet().server(0).Kill();
      case Trouble::kServerPromoted:
        return pair_->KillMaster();
      case Trouble::kCatalogDown:
        return store_->SetCatalogTrouble(CatalogTrouble::kDown);
      case Trouble::kCatalogAnswersLost:
        return store_->SetCatalogTrouble(CatalogTrouble::kAnswersLost);
    }
  }
  void End() {
    switch (GetParam().trouble) {
      case Trouble::kServerKilled:
        return SharedFleet().server(0).Start();
      case Trouble::kServerPromoted:
        return pair_->Promote();
      case Trouble::kCatalogDown:
      case Trouble::kCatalogAnswersLost:
        return store_->SetCatalogTrouble(CatalogTrouble::kNone);
    }
  }
  /// Migrates there, back, there again, and finishes; or migrates back, and cancels. Repeats commands that
  /// are refused.
  void GoOn(bool cancel) {
    bool back = false;
    int polls = 0;
    const bool ended = Eventually([&] {
      const Json status = store_->Try("status", "events").value_or(Json::object());
      const std::string phase = status.value("phase", "");
      if (phase == "created") store_->Try("start", "events").IgnoreError();
      if (phase == "ready") store_->Try(back && cancel ? "cancel" : "cutover", "events").IgnoreError();
      if (phase == "reversible") {
        if (store_->Try(back ? "finish" : "reverse", "events").ok()) back = true;
      }
      if (begun_ && !over_) {
        // Until the worker has met it, or it makes no difference to it.
        if (!status.value("problem", "").empty() || ++polls > 200) {
          End();
          over_ = true;
        }
      }
      return phase == "finished" || phase == "aborted";
    });
    EXPECT_TRUE(ended) << store_->Try("status", "events").value_or(Json()).dump(1);
  }

  const TempDir dir_;
  std::unique_ptr<Pair> pair_;
  std::unique_ptr<MigratingStore> store_;
  std::atomic<bool> begun_{false};
  bool over_ = false;
};

TEST_P(DisturbedTest, ItGoesOnAndNothingIsLost) {
  const Case& one = GetParam();
  const uint64_t seed = Seed("disturbed");
  if (one.trouble == Trouble::kServerPromoted) {
    pair_ = std::make_unique<Pair>(/*semi_sync=*/true);
  } else {
    SharedFleet().Clear();
  }
  store_ = std::make_unique<MigratingStore>(dir_.path(), nullptr, pair_ ? &pair_->fleet() : nullptr);
  store_->migrator().TakeOverAbandoned();
  ASSERT_OK(store_->router().CreateDataset({.name = "events"}));
  History history(Clients::kKeys);
  std::atomic<int> reached{0};
  SetFailPointHook([&](std::string_view name) {
    if (name != one.point || ++reached != one.occurrence) return;
    Begin();
    begun_ = true;
  });
  {
    Clients clients(store_->router(), "events", history, 4, seed);
    clients.Work(50);
    store_->Do("create", "events", {{"target", "mysql"}, {"share", 100}});
    GoOn(std::string_view(one.point).starts_with("abort."));
  }
  EXPECT_TRUE(begun_) << "the point was not reached";
  if (begun_ && !over_) End();
  const bool server = one.trouble == Trouble::kServerKilled || one.trouble == Trouble::kServerPromoted;
  if (server && one.point == std::string_view("verify.pass")) {
    EXPECT_NE(store_->Do("status", "events")["events"].dump().find("compared again"), std::string::npos);
  }
  {
    Clients clients(store_->router(), "events", history, 4, seed + 50);
    clients.Work(50);
    clients.Stop();
    EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
  store_.reset();
  SetFailPointHook(nullptr);
}

/// Its master dies at a step, and all that is on it alone: what was copied since prepare.capture.
class LostReplicaTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LostReplicaTest, WhatItLacksIsCopiedToItWhenItIsPromoted) {
  Pair pair(/*semi_sync=*/false);
  const TempDir dir;
  MigratingStore store(dir.path(), nullptr, &pair.fleet());
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  // No client writes these rows again.
  constexpr int kStill = 100;
  const CellWrite cell{.column = "column", .value = "value"};
  for (int i = 0; i < kStill; ++i) {
    ASSERT_OK(store.router().PutRow("events", fmt::format("still-{}", i), {&cell, 1}, {}));
  }
  History history(Clients::kKeys);
  Clients clients(store.router(), "events", history, 4, Seed("lost replica"));
  clients.Work(200);
  std::atomic<bool> killed{false};
  SetFailPointHook([&](std::string_view name) {
    if (name == "prepare.capture") pair.CutOff();
    if (name != GetParam() || killed) return;
    pair.KillMaster();
    killed = true;
  });
  store.Do("create", "events", {{"target", "mysql"}, {"share", 100}, {"auto", true}});
  store.Do("start", "events");
  EXPECT_TRUE(Eventually([&] { return killed.load(); }));
  pair.Promote();
  EXPECT_TRUE(Eventually([&] {
    const Json status = store.Try("status", "events").value_or(Json::object());
    // A cutover that was given up is not retried by itself.
    if (status.value("phase", "") == "ready" && status.value("wanted", "") == "nothing") {
      store.Try("cutover", "events").IgnoreError();
    }
    return status.value("phase", "") == "reversible";
  }));
  EXPECT_GT(store.Do("status", "events")["repaired"], kStill / 4);
  for (int i = 0; i < kStill; ++i) {
    const auto row = store.router().GetRow("events", fmt::format("still-{}", i), {});
    EXPECT_EQ(row.ok() ? row->items.size() : 0u, 1u) << i;
  }
  clients.Work(100);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_EQ(history.Check(), std::nullopt);
  store.Do("finish", "events");
  store.Await("events", "finished");
  SetFailPointHook(nullptr);
}

INSTANTIATE_TEST_SUITE_P(Points, LostReplicaTest,
                         ::testing::Values("verify.pass", "cutover.frozen", "cutover.moved"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

/// The side that a cutover leaves loses its master after it was closed, and the slave that is promoted lacks
/// the last writes, and that it was closed. The other side has everything.
///
/// The parameter is whether the slave is promoted at once, or only when the other side serves.
class LostSourceTest : public ::testing::TestWithParam<bool> {};

TEST_P(LostSourceTest, TheOtherSideServesWhatItLacks) {
  Pair pair(/*semi_sync=*/false);
  const TempDir dir;
  MigratingStore store(dir.path(), nullptr, &pair.fleet());
  ASSERT_OK(store.router().CreateDataset({.name = "events", .backend = "mysql"}));
  constexpr int kRows = 100;
  const auto put_all = [&](const char* prefix, const char* value) {
    const CellWrite cell{.column = "column", .value = value};
    for (int i = 0; i < kRows; ++i) {
      ASSERT_OK(store.router().PutRow("events", fmt::format("{}-{}", prefix, i), {&cell, 1}, {}));
    }
  };
  const auto expect_all = [&] {
    for (const char* const prefix : {"early", "late"}) {
      for (int i = 0; i < kRows; ++i) {
        const auto row = store.router().GetRow("events", fmt::format("{}-{}", prefix, i), {});
        ASSERT_OK(row.status());
        ASSERT_EQ(row->items.size(), 1u) << prefix << i;
        EXPECT_EQ(row->items[0].cells[0].value, "newer") << prefix << i;
      }
    }
  };
  put_all("early", "older");
  store.Do("create", "events", {{"target", "rocksdb"}, {"share", 100}});
  store.Do("start", "events");
  store.Await("events", "ready");
  pair.CutOff();
  put_all("early", "newer");
  put_all("late", "newer");
  std::atomic<bool> killed{false};
  SetFailPointHook([&](std::string_view name) {
    if (name != "cutover.moved" || killed.exchange(true)) return;
    pair.KillMaster();
    if (GetParam()) pair.Promote();
  });
  store.Do("cutover", "events");
  ASSERT_TRUE(Eventually([&] { return store.BackendOf("events") == "rocksdb"; }))
      << store.Do("status", "events").dump(1);
  ASSERT_TRUE(killed);
  expect_all();
  if (!GetParam()) pair.Promote();
  // The slave is closed, and gets what it lacks.
  ASSERT_TRUE(Eventually([&] {
    const Json status = store.Do("status", "events");
    return status["phase"] == "reversible" && status["repaired"] >= kRows / 4;
  })) << store.Do("status", "events").dump(1);
  EXPECT_EQ(store.Do("status", "events")["doubt"], "");
  expect_all();
  store.Do("reverse", "events");
  store.Await("events", "ready");
  EXPECT_EQ(store.BackendOf("events"), "mysql");
  expect_all();
  SetFailPointHook(nullptr);
}

INSTANTIATE_TEST_SUITE_P(When, LostSourceTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "PromotedAtOnce" : "PromotedLater"; });

/// A side whose disk is slow: every call takes some time, and some take long.
class Slow : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) override {
    Wait();
    return inner->TransitionTo(epoch, state, capture);
  }
  absl::StatusOr<std::vector<DirtyEntry>> ReadDirty(size_t limit) override {
    Wait();
    return inner->ReadDirty(limit);
  }
  absl::Status RemoveDirty(uint64_t epoch, std::span<const DirtyEntry> entries) override {
    Wait();
    return inner->RemoveDirty(epoch, entries);
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    Wait();
    return inner->Read(keys, as_of);
  }
  absl::Status Replace(uint64_t epoch, std::span<const Unit> units, bool fresh) override {
    Wait();
    return inner->Replace(epoch, units, fresh);
  }

 private:
  void Wait() {
    const uint64_t call = calls_.fetch_add(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(call % 10 == 0 ? 60 : 5));
  }
  std::atomic<uint64_t> calls_{0};
};

TEST(Disturbed, OnSlowDisksItTakesItsTime) {
  SharedFleet().Clear();
  const TempDir dir;
  MigratingStore store(dir.path(), [](std::unique_ptr<MigrationEndpoint> endpoint) {
    return std::make_unique<Slow>(std::move(endpoint));
  });
  ASSERT_OK(store.router().CreateDataset({.name = "events"}));
  History history(Clients::kKeys);
  {
    Clients clients(store.router(), "events", history, 4, Seed("slow"));
    clients.Work(100);
    store.Do("create", "events", {{"target", "mysql"}, {"share", 100}, {"freeze_ms", 20'000}});
    store.Do("start", "events");
    store.Await("events", "ready");
    store.Do("cutover", "events");
    store.Await("events", "reversible");
    clients.Work(50);
    store.Do("rollback", "events");
    store.Await("events", "aborted");
    clients.Work(50);
    EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
}

/// Some steps each time, all of them with KV_TEST_ALL_POINTS.
std::vector<Case> Cases() {
  static const std::vector<std::pair<const char*, int>> some = {
      {"prepare.capture", 1}, {"backfill.replaced", 1}, {"drain.replaced", 3},
      {"verify.pass", 1},     {"cutover.frozen", 1},    {"cutover.moved", 1},
      {"cutover.serving", 2}, {"finish.dropped", 1},    {"abort.plain", 1}};
  static const std::vector<std::pair<const char*, int>> others = {
      {"takeover.half", 1},    {"prepare.begin", 1},   {"prepare.named", 1},   {"prepare.target", 1},
      {"backfill.read", 1},    {"backfill.done", 1},   {"copy.read", 3},       {"drain.listed", 3},
      {"drain.removed", 3},    {"cutover.begin", 1},   {"cutover.armed", 1},   {"cutover.drained", 1},
      {"cutover.empty", 1},    {"cutover.counted", 1}, {"cutover.serving", 1}, {"cutover.routed", 1},
      {"cutover.recorded", 1}, {"cutover.frozen", 2},  {"cutover.moved", 2},   {"cutover.routed", 2},
      {"cutover.counted", 3},  {"finish.plain", 1},    {"finish.routed", 1},   {"abort.dropped", 1},
      {"abort.routed", 1}};
  const bool all = std::getenv("KV_TEST_ALL_POINTS") != nullptr;
  std::vector<Case> cases;
  for (const Trouble trouble : {Trouble::kServerKilled, Trouble::kServerPromoted, Trouble::kCatalogDown,
                                Trouble::kCatalogAnswersLost}) {
    for (const auto& [point, occurrence] : some) {
      // Each of these starts two more servers.
      const std::string_view name = point;
      const bool promoted = trouble == Trouble::kServerPromoted;
      if (promoted && !all && name != "drain.replaced" && name != "cutover.moved" && name != "verify.pass")
        continue;
      cases.push_back({trouble, point, occurrence});
    }
    if (!all) continue;
    for (const auto& [point, occurrence] : others) cases.push_back({trouble, point, occurrence});
  }
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& one) {
  static constexpr const char* kNames[] = {"ServerKilled", "ServerPromoted", "CatalogDown",
                                           "CatalogAnswersLost"};
  std::string name = fmt::format("{}_{}{}", kNames[static_cast<int>(one.param.trouble)], one.param.point,
                                 one.param.occurrence);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Points, DisturbedTest, ::testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace kvstore::testing
