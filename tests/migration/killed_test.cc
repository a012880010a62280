#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "backend_api/forwarding_endpoint.h"
#include "base/fail_point.h"
#include "tests/migration/migrating_store.h"
#include "tests/support/eventually.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A process with worker, embedded store and clients is killed at each step of a migration, and another one
/// continues.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

struct Point {
  const char* name;
  int occurrence;  ///< Which time the step is reached; 2: on the way back.
};

/// Drives a migration to its end, from wherever it is.
void GoOn(MigratingStore& store, bool cancel) {
  for (int step = 0; step < 1500; ++step) {
    const std::string phase = store.PhaseOf("events");
    if (phase == "none" || phase == "finished" || phase == "aborted") return;
    if (phase == "created") store.Try(cancel ? "cancel" : "start", "events").IgnoreError();
    if (phase == "ready") store.Try(cancel ? "cancel" : "cutover", "events").IgnoreError();
    if (phase == "reversible") store.Try(cancel ? "rollback" : "finish", "events").IgnoreError();
    ::usleep(20'000);
  }
  ADD_FAILURE() << "does not come to an end: " << store.Do("status", "events").dump(1);
}

/// The main function of the process that is killed. Returns only if something is wrong.
int Worker(const std::filesystem::path& dir, const Point& point, History& history, uint64_t seed,
           bool cancel) {
  // Ends the process if it hangs.
  ::alarm(300);
  MigratingStore store(dir);
  if (!store.router().CreateDataset({.name = "events"}).ok()) return 2;
  Clients clients(store.router(), "events", history, 4, seed);
  clients.Work(100);
  std::atomic<int> reached{0};
  SetFailPointHook([&](std::string_view name) {
    if (name == point.name && ++reached == point.occurrence) ::kill(::getpid(), SIGKILL);
  });
  store.Try("create", "events", {{"target", "mysql"}, {"share", 100}, {"units_per_s", 150}}).IgnoreError();
  store.Try("start", "events").IgnoreError();
  store.Await("events", "ready");
  store.Try("cutover", "events").IgnoreError();
  store.Await("events", "reversible");
  store.Try("reverse", "events").IgnoreError();
  store.Await("events", "ready");
  GoOn(store, cancel);
  // It waits for its threads no more than the kill would.
  ::_exit(3);
}

/// How a process continues the migration of one that was killed.
enum class Way { kByItself, kByRepair };

/// The main function of the process that continues. Returns 0 if all is well.
int Successor(const std::filesystem::path& dir, History& history, uint64_t seed, bool cancel, Way way) {
  MigratingStore store(dir);
  if (way == Way::kByItself) {
    store.migrator().TakeOverAbandoned();
  } else if (store.PhaseOf("events") != "none") {
    const Json found = store.Do("repair", "events");
    EXPECT_EQ(found["worker"], "none");
    EXPECT_NE(found["truth"], "") << found.dump(1);
    EXPECT_TRUE(found["decisions"].empty()) << found.dump(1);
    EXPECT_EQ(found["steps"].size(), 1u) << found.dump(1);
    EXPECT_EQ(store.Do("repair", "events", {{"yes", true}})["done"], true);
  }
  Clients clients(store.router(), "events", history, 4, seed);
  // Clients are served again at once, or as soon as the step that was cut short is finished.
  clients.Work(20);
  if (!cancel && store.PhaseOf("events") != "none") {
    store.Try("throttle", "events", {{"units_per_s", 0}}).IgnoreError();
  }
  GoOn(store, cancel);
  clients.Work(50);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_OK(store.router().AlterDataset("events", {.ttl_ms = 1'000'000'000})) << "migrates no more";
  return ::testing::Test::HasFailure() ? 1 : 0;
}

class KilledTest : public ::testing::TestWithParam<Point> {
 protected:
  static void KillAndGoOn(Way way);
};

/// Both are forked from a process that has never opened a store. In one that had, RocksDB's threads would
/// stay after the store was closed, and a child would inherit their locks and queues without the threads.
void KilledTest::KillAndGoOn(Way way) {
  const Point point = GetParam();
  const uint64_t seed = Seed("killed");
  EXPECT_EQ(Wait(Fork([] {
              SharedFleet().Clear();
              return 0;
            })).code,
            0);
  const TempDir dir;
  History history(Clients::kKeys);
  const bool cancel = std::string_view(point.name).starts_with("abort.");
  const Exit killed = Wait(Fork([&] { return Worker(dir.path(), point, history, seed, cancel); }));
  ASSERT_EQ(killed.signal, SIGKILL) << "the point was not reached: " << killed.code;
  EXPECT_EQ(Wait(Fork([&] { return Successor(dir.path(), history, seed + 50, cancel, way); })).code, 0);
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_P(KilledTest, AnotherProcessGoesOnAndNothingIsLost) { KillAndGoOn(Way::kByItself); }

class RepairedTest : public KilledTest {};

/// kv migrate repair says how it stands, and mends it.
TEST_P(RepairedTest, ARepairGoesOnAndNothingIsLost) { KillAndGoOn(Way::kByRepair); }

constexpr Point kPoints[] = {
    {"takeover.recorded", 1}, {"takeover.half", 1},    {"prepare.begin", 1},   {"prepare.named", 1},
    {"prepare.target", 1},    {"prepare.capture", 1},  {"backfill.read", 1},   {"backfill.replaced", 1},
    {"backfill.done", 1},     {"copy.read", 3},        {"drain.listed", 3},    {"drain.replaced", 3},
    {"drain.removed", 3},     {"verify.pass", 1},      {"cutover.begin", 1},   {"cutover.armed", 1},
    {"cutover.drained", 1},   {"cutover.frozen", 1},   {"cutover.empty", 1},   {"cutover.counted", 1},
    {"cutover.moved", 1},     {"cutover.serving", 1},  {"cutover.routed", 1},  {"cutover.recorded", 1},
    {"cutover.begin", 2},     {"cutover.armed", 2},    {"cutover.drained", 2}, {"cutover.frozen", 2},
    {"cutover.empty", 2},     {"cutover.counted", 2},  {"cutover.moved", 2},   {"cutover.serving", 2},
    {"cutover.routed", 2},    {"cutover.recorded", 2}, {"finish.dropped", 1},  {"finish.plain", 1},
    {"finish.routed", 1},     {"abort.plain", 1},      {"abort.dropped", 1},   {"abort.routed", 1},
};

/// MySQL, whose host has come back as a slave without the last writes.
class Promoted : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  absl::StatusOr<std::string> BootId() override {
    auto boot = inner->BootId();
    if (boot.ok()) *boot += " promoted";
    return boot;
  }
};

constexpr int kOlderRows = 64;

/// Is killed when MySQL has moved, and before the other side serves.
int WorkerOfASourceOnMySql(const std::filesystem::path& dir) {
  ::alarm(300);
  MigratingStore store(dir);
  if (!store.router().CreateDataset({.name = "events", .backend = "mysql", .max_versions = 2}).ok()) return 2;
  for (const uint64_t timestamp : {1, 2}) {
    const CellWrite cell{.column = "c", .value = timestamp == 1 ? "older" : "newer", .timestamp = timestamp};
    for (int i = 0; i < kOlderRows; ++i) {
      if (!store.router().PutRow("events", fmt::format("row{}", i), {&cell, 1}, {}).ok()) return 2;
    }
  }
  SetFailPointHook([](std::string_view name) {
    if (name == "cutover.moved") ::kill(::getpid(), SIGKILL);
  });
  store.Try("create", "events", {{"target", "rocksdb"}, {"share", 100}}).IgnoreError();
  store.Try("start", "events").IgnoreError();
  store.Await("events", "ready");
  store.Try("cutover", "events").IgnoreError();
  store.Await("events", "reversible");
  ::_exit(3);
}

int SuccessorOfASourceOnMySql(const std::filesystem::path& dir) {
  // Half of the shards are as they were in the freeze of an earlier cutover, with its log, and without what
  // was written since.
  for (uint32_t shard = 0; shard < TestFleet::kShards / 2; ++shard) {
    SharedFleet().OfShard(shard).Run(
        fmt::format("UPDATE `mod{0:05}`.`events$state` SET state = 2; DELETE FROM `mod{0:05}`.`events$away` "
                    "WHERE value = 'newer'; "
                    "RENAME TABLE `mod{0:05}`.`events$away` TO `mod{0:05}`.`events`; "
                    "UPDATE `mod{0:05}`.`events$state` SET state = 3",
                    shard));
  }
  MigratingStore store(dir,
                       [](std::unique_ptr<MigrationEndpoint> endpoint) -> std::unique_ptr<MigrationEndpoint> {
                         if (endpoint->Extent().value_or("").empty()) return endpoint;
                         return std::make_unique<Promoted>(std::move(endpoint));
                       });
  store.migrator().TakeOverAbandoned();
  EXPECT_TRUE(Eventually([&] { return store.Do("status", "events").value("doubt", "") != ""; }))
      << store.Do("status", "events").dump(1);
  // Had the log been copied, both sides would be the same now, without the newer values.
  EXPECT_GT(store.Do("status", "events")["differences"], 10);
  return ::testing::Test::HasFailure() ? 1 : 0;
}

/// The worker is killed, and a host of the side that the cutover leaves is lost, in the same moment.
TEST(OlderLog, ThatComesBackIsNotCopiedOverWhatIsNewer) {
  EXPECT_EQ(Wait(Fork([] {
              SharedFleet().Clear();
              return 0;
            })).code,
            0);
  const TempDir dir;
  ASSERT_EQ(Wait(Fork([&] { return WorkerOfASourceOnMySql(dir.path()); })).signal, SIGKILL);
  EXPECT_EQ(Wait(Fork([&] { return SuccessorOfASourceOnMySql(dir.path()); })).code, 0);
}

constexpr Point kRepairedPoints[] = {
    {"prepare.capture", 1}, {"backfill.replaced", 1}, {"cutover.frozen", 1}, {"cutover.moved", 1},
    {"cutover.serving", 1}, {"cutover.routed", 1},    {"cutover.frozen", 2}, {"cutover.moved", 2},
    {"cutover.serving", 2}, {"cutover.recorded", 2},  {"finish.dropped", 1}, {"abort.plain", 1},
};

std::string NameOf(const ::testing::TestParamInfo<Point>& one) {
  std::string name = std::string(one.param.name) + std::to_string(one.param.occurrence);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Points, KilledTest, ::testing::ValuesIn(kPoints), NameOf);
INSTANTIATE_TEST_SUITE_P(Points, RepairedTest, ::testing::ValuesIn(kRepairedPoints), NameOf);

}  // namespace
}  // namespace kvstore::testing
