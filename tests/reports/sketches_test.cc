#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reports/aggregate.h"
#include "reports/exact_sum.h"
#include "reports/hyperloglog.h"
#include "reports/quantile_sketch.h"
#include "tests/reports/hex.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::reports {
namespace {

using kvstore::testing::FailsWith;
using kvstore::testing::Hex;
using kvstore::testing::Random;

TEST(HyperLogLog, CountsWithinItsError) {
  for (const int size : {0, 1, 2, 10, 100, 1'000, 5'000, 20'000, 100'000}) {
    HyperLogLog sketch;
    for (int i = 0; i < size; ++i) {
      sketch.Add("member " + std::to_string(i));
      if (i % 3 == 0) sketch.Add("member " + std::to_string(i));
    }
    // Five times the standard error of 1.04 / sqrt(4096); small sets are all but exact.
    EXPECT_NEAR(sketch.Estimate(), size, std::max(1.0, size * 5 * 0.01625)) << size;
    if (size <= 10) {
      EXPECT_EQ(std::llround(sketch.Estimate()), size);
    }
  }
}

TEST(HyperLogLog, MergingIsTheUnionInAnyOrder) {
  Random random(testing::Seed("hll"));
  for (int round = 0; round < 20; ++round) {
    HyperLogLog parts[3];
    HyperLogLog whole;
    for (uint64_t i = random.Below(3'000); i > 0; --i) {
      const std::string member = std::to_string(random.Below(2'000));
      parts[random.Below(3)].Add(member);
      whole.Add(member);
    }
    HyperLogLog forward = parts[0];
    forward.Merge(parts[1]);
    forward.Merge(parts[2]);
    HyperLogLog backward = parts[2];
    backward.Merge(parts[1]);
    backward.Merge(parts[0]);
    EXPECT_EQ(forward, whole);
    EXPECT_EQ(backward.Encode(), whole.Encode());
    ASSERT_OK_AND_ASSIGN(const HyperLogLog back, HyperLogLog::Decode(whole.Encode()));
    EXPECT_EQ(back, whole);
  }
}

TEST(HyperLogLog, HasTheseBytes) {
  HyperLogLog sketch;
  EXPECT_EQ(Hex(sketch.Encode()), "0100");
  sketch.Add("N14228");
  sketch.Add("N24211");
  EXPECT_EQ(Hex(sketch.Encode()), "0100d10301971901");
  for (int i = 0; i < 10'000; ++i) sketch.Add(std::to_string(i));
  EXPECT_EQ(sketch.Encode().size(), 2u + 3'072u);
}

TEST(QuantileSketch, IsWithinOnePercentOfTheExactAnswer) {
  Random random(testing::Seed("quantiles"));
  for (int round = 0; round < 50; ++round) {
    QuantileSketch sketch;
    std::vector<double> values;
    for (uint64_t i = 1 + random.Below(2'000); i > 0; --i) {
      const double size =
          std::ldexp(static_cast<double>(random.Next() >> 11), static_cast<int>(random.Below(80)) - 80);
      const double value = random.OneIn(10) ? 0 : random.OneIn(3) ? -size : size;
      values.push_back(value);
      sketch.Add(value);
    }
    std::sort(values.begin(), values.end());
    // In thousandths, so that ranks are computed without rounding.
    for (const size_t quantile : {0, 10, 250, 500, 700, 900, 990, 999, 1'000}) {
      const double exact = values[quantile * (values.size() - 1) / 1'000];
      EXPECT_NEAR(sketch.Quantile(static_cast<double>(quantile) / 1'000), exact, std::fabs(exact) * 0.010001)
          << quantile;
    }
    EXPECT_EQ(sketch.min(), values.front());
    EXPECT_EQ(sketch.max(), values.back());
    ASSERT_OK_AND_ASSIGN(const QuantileSketch back, QuantileSketch::Decode(sketch.Encode()));
    EXPECT_EQ(back, sketch);
  }
}

TEST(QuantileSketch, ARankIsNotOneTooLowByFloatingPoint) {
  QuantileSketch sketch;
  for (int i = 0; i < 63; ++i) sketch.Add(1);
  for (int i = 0; i < 28; ++i) sketch.Add(1'000);
  EXPECT_LT(0.7 * 90, 63) << "otherwise this tests nothing";
  EXPECT_NEAR(sketch.Quantile(0.7), 1'000, 10);
  EXPECT_NEAR(sketch.Quantile(0.699), 1, 0.01) << "a rank between two numbers is the lower one";
}

TEST(QuantileSketch, MergingIsTheSameInAnyOrder) {
  Random random(testing::Seed("quantile merges"));
  for (int round = 0; round < 50; ++round) {
    QuantileSketch parts[3];
    QuantileSketch whole;
    for (uint64_t i = random.Below(300); i > 0; --i) {
      const double value = static_cast<double>(random.Below(2'000)) - 1'000;
      parts[random.Below(3)].Add(value);
      whole.Add(value);
    }
    QuantileSketch merged = parts[2];
    ASSERT_OK(merged.Merge(parts[0]));
    ASSERT_OK(merged.Merge(parts[1]));
    EXPECT_EQ(merged.Encode(), whole.Encode());
  }
}

TEST(QuantileSketch, HasTheseBytes) {
  QuantileSketch sketch;
  for (const double value : {4.0, -2.0, 11.0, 11.0, 0.0}) sketch.Add(value);
  EXPECT_EQ(Hex(sketch.Encode()), "0101028c01013202014601c0000000000000004026000000000000");
}

TEST(Sketches, HostileBytesAreRefusedOrComeBack) {
  Random random(testing::Seed("hostile sketches"));
  HyperLogLog distinct;
  QuantileSketch distribution;
  for (int i = 0; i < 40; ++i) {
    distinct.Add(std::to_string(i));
    distribution.Add(i * 3 - 20);
  }
  const std::string seeds[] = {distinct.Encode(), distribution.Encode(), ""};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = seeds[random.Below(3)];
    for (uint64_t i = random.Below(4); i > 0 && !bytes.empty(); --i) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    }
    if (random.OneIn(3)) bytes.resize(random.Below(bytes.size() + 4));
    if (const auto back = HyperLogLog::Decode(bytes); back.ok()) {
      EXPECT_EQ(back->Encode(), bytes);
      EXPECT_GE(back->Estimate(), 0);
    } else {
      EXPECT_THAT(back, FailsWith(absl::StatusCode::kDataLoss, "distinct"));
    }
    if (const auto back = QuantileSketch::Decode(bytes); back.ok() && back->count() > 0) {
      const double middle = back->Quantile(0.5);
      EXPECT_TRUE(middle >= back->min() && middle <= back->max());
    }
  }
}

TEST(ExactSum, IsTheSameInAnyOrderAndExact) {
  ExactSum sum;
  for (const double value : {1e100, 1.0, -1e100, 1e-300, 3.0}) sum.Add(value);
  EXPECT_EQ(sum.Round(), 4.0);
  sum.Add(-4.0);
  EXPECT_EQ(sum.Round(), 1e-300);
  Random random(testing::Seed("exact_sum"));
  for (int round = 0; round < 200; ++round) {
    std::vector<double> values;
    for (uint64_t i = 1 + random.Below(100); i > 0; --i) {
      const auto integer = static_cast<int64_t>(random.Next()) >> random.Below(60);
      values.push_back(std::ldexp(static_cast<double>(integer), static_cast<int>(random.Below(200)) - 100));
    }
    ExactSum forward;
    ExactSum parts[3];
    for (const double value : values) forward.Add(value);
    std::reverse(values.begin(), values.end());
    for (const double value : values) parts[random.Below(3)].Add(value);
    parts[1].Merge(parts[2]);
    parts[1].Merge(parts[0]);
    EXPECT_EQ(parts[1].Round(), forward.Round());
  }
}

TEST(ExactSum, RoundsOnceAndToEven) {
  const double ulp = std::ldexp(1.0, -52);
  ExactSum sum;
  sum.Add(1.0);
  sum.Add(ulp / 2);
  EXPECT_EQ(sum.Round(), 1.0) << "half way: to the even one";
  sum.Add(std::ldexp(1.0, -1074));
  EXPECT_EQ(sum.Round(), 1.0 + ulp) << "above half way";
  ExactSum small;
  small.Add(std::ldexp(1.0, -1074));
  small.Add(std::ldexp(1.0, -1074));
  EXPECT_EQ(small.Round(), std::ldexp(1.0, -1073));
  ExactSum negative;
  negative.Add(-1.5);
  EXPECT_EQ(negative.Round(), -1.5);
  ExactSum integers;
  integers.Add((Int128{1} << 100) + 1);
  integers.Add(-(Int128{1} << 100));
  EXPECT_EQ(integers.Round(), 1.0);
  ExactSum great;
  great.Add(1.7e308);
  great.Add(1.7e308);
  EXPECT_TRUE(std::isinf(great.Round()));
}

TEST(Aggregate, SumsOfIntegersAreExactAndRefuseToOverflow) {
  Aggregate cell;
  cell.Add(1, Number::Integer(INT64_MAX), false);
  cell.Add(2, Number::Integer(INT64_MAX), false);
  EXPECT_THAT(cell.Result(*ParseFunction("f", "sum")),
              FailsWith(absl::StatusCode::kFailedPrecondition, "64 bits"));
  cell.Add(3, Number::Integer(-INT64_MAX), false);
  EXPECT_EQ(**cell.Result(*ParseFunction("f", "sum")), Number::Integer(INT64_MAX));
}

TEST(Aggregate, PercentilesAreThoseOfNumpy) {
  Aggregate cell;
  for (const int64_t value : {10, 20, 30, 40}) cell.Add(value, Number::Integer(value), true);
  EXPECT_EQ((*cell.Result(*ParseFunction("f", "p50")))->AsReal(), 25);
  EXPECT_EQ((*cell.Result(*ParseFunction("f", "p0")))->AsReal(), 10);
  EXPECT_EQ((*cell.Result(*ParseFunction("f", "p100")))->AsReal(), 40);
  EXPECT_DOUBLE_EQ((*cell.Result(*ParseFunction("f", "p99.9")))->AsReal(), 39.97);
}

TEST(Aggregate, PercentilesBetweenTheGreatestNumbersAreFinite) {
  Aggregate cell;
  for (const double value : {-1.7e308, 1.7e308}) cell.Add(1, Number::Real(value), true);
  EXPECT_EQ((*cell.Result(*ParseFunction("f", "p50")))->AsReal(), 0);
  EXPECT_NEAR((*cell.Result(*ParseFunction("f", "p75")))->AsReal(), 0.85e308, 1e300);
}

TEST(Aggregate, FunctionsAreKnownByName) {
  for (const char* name : {"", "p", "p101", "p-1", "median", "px", "SUM", "p1e1"}) {
    EXPECT_THAT(ParseFunction("function", name),
                FailsWith(absl::StatusCode::kInvalidArgument, "there is no function"))
        << name;
  }
  EXPECT_THAT(CheckFunction(*ParseFunction("f", "sum"), {.name = "planes", .kind = MetricKind::kDistinct}),
              FailsWith(absl::StatusCode::kInvalidArgument, "distinct alone"));
}

}  // namespace
}  // namespace kvstore::reports
