#include "shardmap/weights.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {
namespace {

using absl::StatusCode;

TEST(Weights, AreReadBackAsTheyWereWritten) {
  const ShardWeights weights = {{0, 511, 0}, {512, 512, 7}};
  EXPECT_EQ(ToJson(weights), R"([{"range":[0,511],"weight":0},{"range":[512,512],"weight":7}])");
  EXPECT_EQ(*ParseWeights(ToJson(weights)), weights);
  EXPECT_EQ(*ParseWeights("[]"), ShardWeights());
}

TEST(Weights, MistakesAreNamed) {
  const auto refused = [](const char* text, const char* why) {
    EXPECT_THAT(ParseWeights(text), FailsWith(StatusCode::kInvalidArgument, why));
  };
  refused("{", "must be a JSON array");
  refused(R"([{"range": [0, 1]}])", "entry 0: must be an object of range and weight");
  refused(R"([{"range": [0, 1], "weight": 1}, {"range": [2, 1], "weight": 1}])",
          "entry 1: range: 2-1 is not within");
  refused(R"([{"range": [0, 65536], "weight": 1}])", "range: 0-65536 is not within 0-65535");
  refused(R"([{"range": [0, -1], "weight": 1}])", "range: must be [FIRST, LAST]");
  refused(R"([{"range": [0, 1], "weight": 1000001}])", "weight: must be a number within 0-1000000");
}

TEST(Weights, AChangeCutsThoseBefore) {
  const ShardWeights weights = {{0, 9, 0}, {20, 29, 5}};
  EXPECT_EQ(WithWeight(weights, {5, 24, 3}), (ShardWeights{{0, 4, 0}, {5, 24, 3}, {25, 29, 5}}));
  EXPECT_EQ(WithWeight(weights, {3, 4, 2}), (ShardWeights{{0, 2, 0}, {3, 4, 2}, {5, 9, 0}, {20, 29, 5}}));
  EXPECT_EQ(WithWeight(weights, {0, 65535, 1}), ShardWeights()) << "1 is what all have";
}

/// A source whose text the test sets.
class GivenSource : public MapSource {
 public:
  absl::StatusOr<std::optional<std::string>> Read() override {
    const MutexLock lock(mutex_);
    ++reads_;
    // Like a node of ZooKeeper, it does not give the same text twice.
    if (std::exchange(given_, true) && text_.ok()) return std::nullopt;
    if (!text_.ok()) return text_.status();
    return std::optional<std::string>(*text_);
  }
  void OnChange(std::function<void()> on_change) override {
    const MutexLock lock(mutex_);
    on_change_ = std::move(on_change);
  }
  std::chrono::milliseconds poll_interval() const override { return std::chrono::hours(1); }
  std::string name() const override { return "given"; }

  /// Sets the text, and waits until it was read and, if it is good, is in force.
  void SetText(absl::StatusOr<std::string> text) {
    {
      const MutexLock lock(mutex_);
      text_ = std::move(text);
      given_ = false;
    }
    // Waits for two reads: when the second one begins, the watcher has adopted what the first one read.
    for (int i = 0; i < 2; ++i) {
      uint64_t before = 0;
      {
        const MutexLock lock(mutex_);
        before = reads_;
        on_change_();
      }
      EXPECT_TRUE(Eventually([&] {
        const MutexLock lock(mutex_);
        return reads_ > before;
      }));
    }
  }

 private:
  Mutex mutex_;
  std::function<void()> on_change_ ABSL_GUARDED_BY(mutex_);
  absl::StatusOr<std::string> text_ ABSL_GUARDED_BY(mutex_) = absl::NotFoundError("there are none");
  uint64_t reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool given_ ABSL_GUARDED_BY(mutex_) = false;  // the text was read
};

TEST(Weights, AreWatchedAndABadEditChangesNothing) {
  auto given = std::make_unique<GivenSource>();
  GivenSource& source = *given;
  const WeightsWatcher watcher(std::move(given), {{1, 1, 9}});
  EXPECT_EQ(*watcher.weights(), (ShardWeights{{1, 1, 9}}));
  source.SetText(R"([{"range": [0, 3], "weight": 0}])");
  EXPECT_EQ(*watcher.weights(), (ShardWeights{{0, 3, 0}}));
  source.SetText(R"([{"range": [0, 3], "weight": "many"}])");
  EXPECT_EQ(*watcher.weights(), (ShardWeights{{0, 3, 0}}));
  source.SetText(absl::UnavailableError("is not reached"));
  EXPECT_EQ(*watcher.weights(), (ShardWeights{{0, 3, 0}}));
  source.SetText("[]");
  EXPECT_TRUE(watcher.weights()->empty());
}

}  // namespace
}  // namespace kvstore::testing
