#include "backends/mysql/changes/consumer_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kvstore_api/call_scope.h"
#include "tests/support/eventually.h"

/// The metrics of consumers are measured beside those who ask for them.
namespace kvstore::testing {
namespace {

using mysql::ConsumerWatch;

/// The lags of consumers in seconds, by name.
class Lags : public MetricsSink {
 public:
  void Gauge(std::string_view name, std::string_view, const Labels& labels, double value) override {
    if (name == "kvstore_consumer_lag_seconds") values[labels.at(1).second].push_back(value);
  }
  void Counter(std::string_view, std::string_view, const Labels&, double) override {}
  std::map<std::string, std::vector<double>> values;
};

TEST(ConsumerWatch, ShowsThoseOfTheDatasetThatIsThereNow) {
  ConsumerWatch watch(
      [](const DatasetSpec& spec) {
        return std::vector<UnitConsumer>{
            {.name = "search", .position = "p", .set_ms = 0, .lag_ms = spec.incarnation * 1000}};
      },
      [] {});
  const DatasetSpec old{.name = "events", .incarnation = 1};
  const DatasetSpec now{.name = "events", .incarnation = 2};
  Lags lags;
  EXPECT_TRUE(Eventually([&] {
    lags.values.clear();
    watch.Describe(lags, {old});
    return !lags.values.empty();
  }));
  EXPECT_EQ(lags.values["search"], std::vector<double>{1});
  lags.values.clear();
  watch.Describe(lags, {now});
  EXPECT_TRUE(lags.values.empty()) << "what was measured is of another dataset of that name";
}

TEST(ConsumerWatch, EndsAMeasurementThatWaits) {
  std::atomic<int> begun{0};
  std::atomic<int> tidied{0};
  {
    ConsumerWatch watch(
        [&](const DatasetSpec&) -> absl::StatusOr<std::vector<UnitConsumer>> {
          ++begun;
          while (CheckCall().ok()) std::this_thread::yield();
          return CheckCall();
        },
        [&] { ++tidied; });
    Lags lags;
    watch.Describe(lags, {{.name = "a", .incarnation = 1}, {.name = "b", .incarnation = 2}});
    EXPECT_TRUE(Eventually([&] { return begun == 1; }));
  }
  EXPECT_EQ(begun, 1) << "the second one is not begun any more";
  EXPECT_EQ(tidied, 1);
}

}  // namespace
}  // namespace kvstore::testing
