#include "backends/mysql/changes/consumers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "backends/mysql/changes/host_log.h"
#include "kvstore_api/call_scope.h"
#include "tests/backends/mysql/noted_places.h"
#include "tests/support/status_matchers.h"

/// Places of consumers are noted without any server.
namespace kvstore::testing {
namespace {

using mysql::ChangePosition;

class ConsumersTest : public ::testing::Test {
 protected:
  ConsumersTest() {
    auto owned = std::make_unique<NotedPlaces>();
    places_ = owned.get();
    consumers_ = std::make_unique<mysql::Consumers>(changes_, std::move(owned));
  }
  /// A place in the logs of so many pairs.
  static std::string PlaceOf(size_t pairs) {
    ChangePosition place{.made_ms = 1, .whole_ms = 0, .pairs = {}};
    for (size_t i = 0; i < pairs; ++i) {
      place.pairs.push_back({.master = fmt::format("m{}:1", i),
                             .slave = fmt::format("s{}:1", i),
                             .domain = static_cast<uint32_t>(i),
                             .complete_ms = 0,
                             .place = {}});
    }
    return place.Encode();
  }

  const DatasetSpec spec_{.name = "events", .incarnation = 7};
  mysql::Changes changes_{nullptr};  // no server is asked
  NotedPlaces* places_ = nullptr;
  std::unique_ptr<mysql::Consumers> consumers_;
};

TEST_F(ConsumersTest, APlaceNamesNoMorePairsThanTheLimit) {
  EXPECT_OK(consumers_->Set(spec_, "search", PlaceOf(4096)));
  EXPECT_THAT(consumers_->Set(spec_, "more", PlaceOf(4097)),
              FailsWith(absl::StatusCode::kResourceExhausted, "names 4097 pairs of hosts"));
  EXPECT_EQ(places_->List(spec_)->size(), 1u);
}

TEST_F(ConsumersTest, ItIsTriedAgainWhenSomebodyElseIsFaster) {
  places_->on_put = [this] {
    return places_->puts < 4 ? absl::AbortedError("somebody else was faster") : absl::OkStatus();
  };
  EXPECT_OK(consumers_->Set(spec_, "search", PlaceOf(1)));
  EXPECT_EQ(places_->puts, 4);
  places_->on_put = [] { return absl::AbortedError("somebody else was faster"); };
  EXPECT_THAT(consumers_->Set(spec_, "search", PlaceOf(1)),
              FailsWith(absl::StatusCode::kUnavailable, "others keep noting where 'search' is"));
}

TEST_F(ConsumersTest, ACallThatIsOverIsNotTriedAgain) {
  std::atomic<bool> cancelled{false};
  places_->on_put = [&] {
    cancelled = places_->puts == 3;
    return absl::AbortedError("somebody else was faster");
  };
  const CallScope scope({.deadline = std::nullopt, .cancelled = &cancelled});
  EXPECT_THAT(consumers_->Set(spec_, "search", PlaceOf(1)), FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(places_->puts, 3);
}

}  // namespace
}  // namespace kvstore::testing
