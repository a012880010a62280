#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "backends/mysql/changes/consumer_watch.h"
#include "backends/mysql/changes/host_log.h"
#include "backends/mysql/changes/master_asks.h"
#include "backends/mysql/fleet/workers.h"
#include "base/fail_point.h"
#include "tests/support/status_matchers.h"

/// Tests of the change stream where the system gives no more threads: it says so, or goes without, and the
/// process lives on.
namespace kvstore::testing {
namespace {

using mysql::MasterAnswer;
using mysql::MasterAsks;

/// As long as it lives, no thread can be started.
class NoThreads {
 public:
  NoThreads() {
    SetFailPointHook([](std::string_view point) {
      if (point == "start-thread")
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    });
  }
  ~NoThreads() { SetFailPointHook(nullptr); }
};

TEST(WithoutThreads, AMasterThatCannotBeAskedIsUnavailable) {
  MasterAsks asks([](const Host&) { return MasterAnswer{.status = absl::OkStatus()}; });
  const std::vector<Host> hosts = {{"a", 1}, {"b", 2}};
  {
    const NoThreads none;
    const auto answers = asks.AskAll(hosts, MasterAsks::Patience::kWhole);
    ASSERT_EQ(answers.size(), 2u);
    for (const MasterAnswer& answer : answers) {
      EXPECT_THAT(answer.status,
                  FailsWith(absl::StatusCode::kUnavailable, "cannot start a thread for the asks of"));
      EXPECT_FALSE(answer.is_late);
    }
    EXPECT_EQ(asks.threads(), 0u);
  }
  for (const MasterAnswer& answer : asks.AskAll(hosts, MasterAsks::Patience::kWhole))
    EXPECT_OK(answer.status);
}

TEST(WithoutThreads, ALogIsReadByConnectionsOfFollowers) {
  const NoThreads none;
  mysql::HostLog log(Host{"127.0.0.1", 1}, {});
  log.Watch({});
  log.Watch({});
  EXPECT_EQ(log.kept(), 0u);
}

TEST(WithoutThreads, MetricsOfConsumersAreLeftOut) {
  class Sink : public MetricsSink {
   public:
    void Gauge(std::string_view, std::string_view, const Labels&, double) override { ++count; }
    void Counter(std::string_view, std::string_view, const Labels&, double) override { ++count; }
    int count = 0;
  };
  mysql::ConsumerWatch watch([](const DatasetSpec&) { return std::vector<UnitConsumer>(); }, [] {});
  const NoThreads none;
  Sink sink;
  watch.Describe(sink, {{.name = "events", .incarnation = 1}});
  EXPECT_EQ(sink.count, 0);
}

TEST(WithoutThreads, TheCallerWorksOnAllHosts) {
  std::atomic<int> done{0};
  const std::vector<std::function<void()>> tasks(5, [&] { ++done; });
  mysql::Workers workers(8);
  {
    const NoThreads none;
    workers.RunAll(tasks);
    EXPECT_EQ(done, 5);
  }
  workers.RunAll(tasks);
  EXPECT_EQ(done, 10);
}

}  // namespace
}  // namespace kvstore::testing
