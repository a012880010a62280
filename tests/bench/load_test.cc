#include "bench/harness/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "bench/harness/distribution.h"
#include "bench/harness/histogram.h"
#include "bench/harness/page.h"
#include "tests/support/random.h"

/// The tools with which `kv bench` measures.
namespace kvstore::bench {
namespace {

TEST(Histogram, QuantilesAreThoseOfAllValuesToOnePercent) {
  std::mt19937_64 random(testing::Seed("histogram"));
  Histogram all;
  Histogram other;
  std::vector<uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    // Values of all sizes: one to forty bits.
    const uint64_t value = random() >> (24 + random() % 40);
    values.push_back(value);
    (i % 2 == 0 ? all : other).Add(value);
  }
  all.Merge(other);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(all.count(), values.size());
  EXPECT_EQ(all.max(), values.back());
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size()))) - 1;
    const auto exact = static_cast<double>(values[at]);
    EXPECT_GE(static_cast<double>(all.Quantile(share)), exact) << share;
    EXPECT_LE(static_cast<double>(all.Quantile(share)), exact * 1.01 + 1) << share;
  }
}

TEST(Histogram, TheSmallestAndTheLargest) {
  Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
  EXPECT_EQ(histogram.mean(), 0);
  histogram.Add(0);
  EXPECT_EQ(histogram.Quantile(1), 0u);
  histogram.Add(UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
  EXPECT_GT(histogram.Quantile(1), uint64_t{1} << 39);
}

TEST(Zipfian, ItemsComeAsOftenAsTheyShould) {
  constexpr uint64_t kItems = 1000;
  constexpr int kDraws = 1'000'000;
  const Zipfian zipfian(kItems);
  double zeta = 0;
  for (uint64_t i = 0; i < kItems; ++i) zeta += 1 / std::pow(static_cast<double>(i + 1), Zipfian::kTheta);
  std::mt19937_64 random(testing::Seed("zipfian"));
  std::vector<int> counts(kItems);
  for (int i = 0; i < kDraws; ++i) ++counts.at(zipfian.Choose(Uniform(random)));
  for (const uint64_t item : {0, 1}) {
    const double expected = kDraws / std::pow(static_cast<double>(item + 1), Zipfian::kTheta) / zeta;
    EXPECT_NEAR(counts[item], expected, expected * 0.03) << item;
  }
  // The paper approximates the other items; their sum is right.
  double expected = 0;
  for (uint64_t i = 0; i < 100; ++i)
    expected += kDraws / std::pow(static_cast<double>(i + 1), Zipfian::kTheta) / zeta;
  EXPECT_NEAR(std::accumulate(counts.begin(), counts.begin() + 100, 0), expected, expected * 0.03);
  EXPECT_LT(zipfian.Choose(std::nextafter(1.0, 0.0)), kItems);
  EXPECT_EQ(zipfian.Choose(0), 0u);
}

TEST(Load, CountsEachCallOfEachRoundByItsKind) {
  std::atomic<uint64_t> calls{0};
  const LoadOptions options{.threads = 2, .warm_up_s = 0, .seconds = 0.02, .rounds = 3};
  const auto rounds = RunLoad(options, [&](int thread) {
    ++calls;
    return thread == 0 ? "even" : "odd";
  });
  ASSERT_EQ(rounds.size(), 3u);
  uint64_t counted = 0;
  for (const LoadRound& round : rounds) {
    ASSERT_EQ(round.latencies.size(), 2u);
    for (const auto& [kind, histogram] : round.latencies) counted += histogram.count();
  }
  EXPECT_EQ(counted, calls);
  const Json json = ToJson(rounds);
  EXPECT_LE(json["ops_s_min"], json["ops_s"]);
  EXPECT_LE(json["ops_s"], json["ops_s_max"]);
  EXPECT_TRUE(json["operations"].contains("even"));
}

TEST(Load, AnOpenLoopSeesAStallInAllCallsThatItDelays) {
  // One of the first calls takes long; the latency of calls that were due meanwhile counts from when they
  // were due.
  std::atomic<bool> stalled{false};
  const LoadOptions options{.threads = 1, .rate = 1000, .warm_up_s = 0, .seconds = 0.5, .rounds = 1};
  const auto rounds = RunLoad(options, [&](int) {
    if (!stalled.exchange(true)) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return "call";
  });
  const Histogram& latencies = rounds.front().latencies.at("call");
  // About 200 of 500 calls were due in those 200 ms, and waited for 100 ms on average.
  EXPECT_GT(latencies.Quantile(0.9), 50'000'000u);
  EXPECT_GT(latencies.count(), 300u);
  EXPECT_LT(latencies.count(), 800u);
}

TEST(Load, SlicesOfALongRunHaveAllCallsAndTheLongestPause) {
  std::atomic<uint64_t> calls{0};
  std::atomic<bool> stalled{false};
  std::vector<size_t> ended;
  const LoadOptions options{.threads = 1, .rate = 1000, .seconds = 0.3};
  const auto slices = RunSlices(
      options, 0.1,
      [&](int) {
        // This call ends after the first slice; calls that were due meanwhile belong to the slice in which
        // they were due.
        if (!stalled.exchange(true)) std::this_thread::sleep_for(std::chrono::milliseconds(150));
        ++calls;
        return "call";
      },
      [&](size_t slice) { ended.push_back(slice); });
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(ended, (std::vector<size_t>{0, 1, 2}));
  uint64_t counted = 0;
  double longest = 0;
  for (const LoadSlice& slice : slices) {
    counted += slice.load.latencies.at("call").count();
    longest = std::max(longest, slice.pause_ms);
  }
  EXPECT_EQ(counted, calls);
  EXPECT_GE(longest, 150);
  // About a hundred were due in the first tenth of a second, and all but the first waited for 50 ms and more.
  EXPECT_GT(slices[0].load.latencies.at("call").count(), 30u);
  EXPECT_GE(slices[0].load.latencies.at("call").Quantile(0.01), 49'000'000u);
}

TEST(Page, ShowsAllAndLoadsNothing) {
  Page page{.title = "A <b> & \"c\"", .facts = {{"cpu", "x<y"}}};
  page.sections.push_back({.title = "reads",
                           .bars = {{"ours", 20, 10, 30}, {"raw", 0, 0, 0}},
                           .curves = {{"ours", {1, 2, 30, 400, 5e6}}}});
  page.sections.push_back({.title = "nothing"});
  const std::string html = ToHtml(page);
  EXPECT_EQ(html.find("<b>"), std::string::npos);
  for (const char* text :
       {"<title>A &lt;b&gt; &amp; &quot;c&quot;</title>", "x&lt;y", ">reads</h2>", ">raw<", "10 s"}) {
    EXPECT_NE(html.find(text), std::string::npos) << text;
  }
  for (const char* text : {"<script", "http", "nan", "inf"})
    EXPECT_EQ(html.find(text), std::string::npos) << text;
  const auto count = [&](std::string_view what) {
    size_t found = 0;
    for (size_t at = html.find(what); at != std::string::npos; at = html.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<svg"), 2u) << "bars and curves of the one section that has some";
  for (const char* tag : {"svg", "g", "text", "table", "tr", "td", "div", "title"}) {
    EXPECT_EQ(count(std::string("<") + tag + ">") + count(std::string("<") + tag + " "),
              count(std::string("</") + tag + ">"))
        << tag;
  }
}

}  // namespace
}  // namespace kvstore::bench
