#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "backend_api/forwarding_endpoint.h"
#include "kvstore_api/call_scope.h"
#include "migration/migrator.h"
#include "tests/migration/fake_time.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"

/// Tests of what bounds a migration: the limits of its rate, and how long its status waits for a side.
namespace kvstore::testing {
namespace {

class MigrationBounds : public MigrationTest {
 protected:
  void Fill(const std::string& dataset, int rows) {
    Create({.name = dataset});
    const std::string value(1000, 'v');
    const CellWrite cell{"c", value, 1};
    for (int i = 0; i < rows; ++i)
      ASSERT_OK(store_->router().PutRow(dataset, fmt::format("row{:04}", i), {&cell, 1}, {}));
  }
};

TEST_F(MigrationBounds, TheWholeCopyKeepsToTheLimitsOfItsRate) {
  FakeTime time;
  Migrator migrator(store_->router().keeper(), dir_ / "rate.log", time.ForThrottle());
  const auto command = [&](const std::string& dataset, const std::string& name, Json options) {
    options.update({{"command", name}, {"dataset", dataset}});
    auto answer = migrator.Command(*ParseJson(options.dump()));
    EXPECT_OK(answer) << name;
    return answer.ok() ? *answer : Json::object();
  };
  /// Migrates a dataset of a thousand rows up to `ready` and returns its status. One thread copies, because
  /// two that sleep at the same time would let it pass twice.
  const auto migrate = [&](const std::string& dataset, Json limits) {
    Fill(dataset, 1000);
    limits.update({{"target", "mysql"}, {"share", 100}, {"threads", 1}});
    command(dataset, "create", limits);
    command(dataset, "start", Json::object());
    EXPECT_TRUE(Eventually([&] { return command(dataset, "status", Json::object())["phase"] == "ready"; }));
    return command(dataset, "status", Json::object());
  };
  using std::chrono::milliseconds;

  const Json by_units = migrate("by_units", {{"units_per_s", 20}});
  EXPECT_EQ(by_units["units_done"], 1000);
  EXPECT_EQ(time.Slept(), milliseconds(50'000));

  const milliseconds before = time.Slept();
  const Json by_bytes = migrate("by_bytes", {{"bytes_per_s", 10'000}});
  const auto bytes = by_bytes["bytes_done"].get<int64_t>();
  EXPECT_GE(bytes, 1'000'000);
  // Each page's pause is cut to a nanosecond.
  EXPECT_NEAR(static_cast<double>((time.Slept() - before).count()), static_cast<double>(bytes) / 10, 1);

  const milliseconds bounded = time.Slept();
  migrate("unlimited", Json::object());
  EXPECT_EQ(time.Slept(), bounded);
}

/// A side that answers no question about its log, and says how long it was given for one.
class Hanging : public ForwardingEndpoint {
 public:
  struct Asked {
    std::atomic<bool> hangs{false};
    std::atomic<int> times{0};
    std::atomic<bool> beyond_two_seconds{false};
  };
  Hanging(std::unique_ptr<MigrationEndpoint> wrapped, Asked& asked)
      : ForwardingEndpoint(std::move(wrapped)), asked_(asked) {}

  absl::StatusOr<DirtyLag> Lag() override {
    if (!asked_.hangs) return inner->Lag();
    const auto deadline = CallScope::Current().deadline;
    // The worker asks without a limit.
    if (!deadline) return inner->Lag();
    ++asked_.times;
    if (*deadline > std::chrono::steady_clock::now() + std::chrono::seconds(2))
      asked_.beyond_two_seconds = true;
    return absl::DeadlineExceededError("it hung for as long as it was given");
  }

 private:
  Asked& asked_;
};

TEST_F(MigrationBounds, AStatusGivesAHangingSideTwoSecondsAndSaysTheRest) {
  Hanging::Asked asked;
  store_.reset();
  store_ = std::make_unique<MigratingStore>(dir_.path(), [&](std::unique_ptr<MigrationEndpoint> endpoint) {
    return std::make_unique<Hanging>(std::move(endpoint), asked);
  });
  Fill("events", 10);
  store_->Do("create", "events", To("mysql"));
  store_->Do("start", "events");
  store_->Await("events", "ready");
  EXPECT_TRUE(store_->Do("status", "events").contains("lag"));
  asked.hangs = true;
  const Json status = store_->Do("status", "events");
  EXPECT_EQ(status["phase"], "ready");
  EXPECT_EQ(status["units_done"], 10);
  EXPECT_FALSE(status.contains("lag")) << status.dump(1);
  EXPECT_GT(asked.times, 0);
  EXPECT_FALSE(asked.beyond_two_seconds);
  asked.hangs = false;
  EXPECT_TRUE(store_->Do("status", "events").contains("lag"));
  store_.reset();  // before what its endpoints refer to
}

}  // namespace
}  // namespace kvstore::testing
