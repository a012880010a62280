#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/fail_point.h"
#include "tests/migration/world.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A process with worker, embedded store and clients is killed at each step of a migration; another one goes
/// on.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

struct Point {
  const char* name;
  int occurrence;  ///< 2: on the way back.
};

/// Drives a migration to its end, from wherever it is.
void GoOn(World& world, bool cancel) {
  for (int step = 0; step < 1500; ++step) {
    const std::string phase = world.PhaseOf("events");
    if (phase == "none" || phase == "finished" || phase == "aborted") return;
    if (phase == "created") world.Try(cancel ? "cancel" : "start", "events").IgnoreError();
    if (phase == "ready") world.Try(cancel ? "cancel" : "cutover", "events").IgnoreError();
    if (phase == "reversible") world.Try(cancel ? "rollback" : "finish", "events").IgnoreError();
    ::usleep(20'000);
  }
  ADD_FAILURE() << "does not come to an end: " << world.Do("status", "events").dump(1);
}

/// The process that is killed. Ends otherwise only if something is wrong.
int Worker(const std::filesystem::path& dir, const Point& point, History& history, uint64_t seed,
           bool cancel) {
  // So that it ends if it hangs.
  ::alarm(300);
  World world(dir);
  if (!world.router().CreateDataset({.name = "events"}).ok()) return 2;
  Clients clients(world.router(), "events", history, 4, seed);
  clients.Work(100);
  std::atomic<int> reached{0};
  SetFailPointHook([&](std::string_view name) {
    if (name == point.name && ++reached == point.occurrence) ::kill(::getpid(), SIGKILL);
  });
  world.Try("create", "events", {{"target", "mysql"}, {"share", 100}, {"units_per_s", 150}}).IgnoreError();
  world.Try("start", "events").IgnoreError();
  world.Await("events", "ready");
  world.Try("cutover", "events").IgnoreError();
  world.Await("events", "reversible");
  world.Try("reverse", "events").IgnoreError();
  world.Await("events", "ready");
  GoOn(world, cancel);
  // It waits for its threads no more than the kill would.
  ::_exit(3);
}

/// The process that goes on. 0: all is well.
int Successor(const std::filesystem::path& dir, History& history, uint64_t seed, bool cancel) {
  World world(dir);
  world.migrator().TakeOverAbandoned();
  Clients clients(world.router(), "events", history, 4, seed);
  // Served again at once, or as soon as the step that was cut short is finished.
  clients.Work(20);
  if (!cancel && world.PhaseOf("events") != "none") {
    world.Try("throttle", "events", {{"units_per_s", 0}}).IgnoreError();
  }
  GoOn(world, cancel);
  clients.Work(50);
  clients.Stop();
  EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  EXPECT_OK(world.router().AlterDataset("events", {.ttl_ms = 1'000'000'000})) << "migrates no more";
  return ::testing::Test::HasFailure() ? 1 : 0;
}

class KilledTest : public ::testing::TestWithParam<Point> {};

/// Both are forked from a process that never opened a store: of one that did, threads are left when it is
/// closed (those of RocksDB's environment are for the life of the process), and a child has their locks and
/// queues, but not them.
TEST_P(KilledTest, AnotherProcessGoesOnAndNothingIsLost) {
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
  EXPECT_EQ(Wait(Fork([&] { return Successor(dir.path(), history, seed + 50, cancel); })).code, 0);
  EXPECT_EQ(history.Check(), std::nullopt);
}

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

INSTANTIATE_TEST_SUITE_P(Points, KilledTest, ::testing::ValuesIn(kPoints), [](const auto& one) {
  std::string name = std::string(one.param.name) + std::to_string(one.param.occurrence);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace kvstore::testing
