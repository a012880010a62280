#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "base/fail_point.h"
#include "tests/migration/world.h"
#include "tests/support/eventually.h"
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

class KilledTest : public ::testing::TestWithParam<Point> {};

TEST_P(KilledTest, AnotherProcessGoesOnAndNothingIsLost) {
  const Point point = GetParam();
  const uint64_t seed = Seed("killed");
  SharedFleet().Clear();
  const TempDir dir;
  History history(Clients::kKeys);
  const bool cancel = std::string_view(point.name).starts_with("abort.");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Nothing here ends but by the kill, or as a failure.
    ::alarm(60);
    World world(dir.path());
    if (!world.router().CreateDataset({.name = "events"}).ok()) ::_exit(2);
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
    ::_exit(3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "the point was not reached: " << (WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  {
    World world(dir.path());
    world.migrator().TakeOverAbandoned();
    Clients clients(world.router(), "events", history, 4, seed + 50);
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
  }
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
