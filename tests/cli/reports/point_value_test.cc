#include "cli/reports/point_value.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace kvstore::cli {
namespace {

using reports::MetricKind;
using reports::Number;
using testing::FailsWith;

TEST(PointValue, IntegersStayExact) {
  EXPECT_EQ(ParseNumber("7"), Number::Integer(7));
  EXPECT_EQ(ParseNumber("-7"), Number::Integer(-7));
  EXPECT_EQ(ParseNumber("007"), Number::Integer(7));
  EXPECT_EQ(ParseNumber("9223372036854775807"), Number::Integer(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(ParseNumber("-9223372036854775808"), Number::Integer(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(ParseNumber("9223372036854775808"), std::nullopt) << "as a real number it would lose digits";
}

TEST(PointValue, RealNumbersMayHaveAnExponent) {
  EXPECT_EQ(ParseNumber("1.5"), Number::Real(1.5));
  EXPECT_EQ(ParseNumber("1.0"), Number::Real(1));
  EXPECT_EQ(ParseNumber("-2.5e-3"), Number::Real(-2.5e-3));
  EXPECT_EQ(ParseNumber("1e6"), Number::Real(1e6));
  EXPECT_EQ(ParseNumber(".5"), Number::Real(0.5));
  EXPECT_EQ(ParseNumber(" 1.5\t"), Number::Real(1.5));
}

TEST(PointValue, AnythingElseIsNoNumber) {
  for (const char* bad : {"", " ", "x", "1x", "1,5", "0x10", "1e400", "inf", "-inf", "nan", "+1", "1 2",
                          "1.5.2", "--1", "1e", "-"}) {
    EXPECT_EQ(ParseNumber(bad), std::nullopt) << bad;
  }
}

TEST(PointValue, CellsOfOtherKindsHaveParts) {
  PointValue value;
  ASSERT_OK(ReadCell("ann;bob;", MetricKind::kDistinct, value));
  EXPECT_EQ(value.members, (std::vector<std::string>{"ann", "bob", ""}));
  ASSERT_OK(ReadCell("ann", MetricKind::kDistinct, value));
  EXPECT_EQ(value.members, (std::vector<std::string>{"ann"})) << "those of the cell before are gone";
  ASSERT_OK(ReadCell("4;-2; 1.5", MetricKind::kDistribution, value));
  EXPECT_EQ(value.values, (std::vector<double>{4, -2, 1.5}));
  EXPECT_THAT(ReadCell("4;;5", MetricKind::kDistribution, value),
              FailsWith(absl::StatusCode::kInvalidArgument, "'' is not a number"));
  EXPECT_THAT(ReadCell("4;5", MetricKind::kValue, value),
              FailsWith(absl::StatusCode::kInvalidArgument, "'4;5' is not a number"));
}

TEST(PointValue, JsonHasOneValueOrAnArray) {
  PointValue value;
  const auto read = [&](const Json& given, MetricKind kind) {
    FlatJson json;
    const FlatValue added = json.Add(given);
    return ReadJsonValue(json, added, kind, value);
  };
  ASSERT_OK(read("7", MetricKind::kValue));
  EXPECT_EQ(value.number, Number::Integer(7));
  ASSERT_OK(read(2.5, MetricKind::kDistribution));
  EXPECT_EQ(value.values, (std::vector<double>{2.5}));
  ASSERT_OK(read(Json::array({1, UINT64_MAX}), MetricKind::kDistribution));
  EXPECT_EQ(value.values, (std::vector<double>{1, 18446744073709551615.0}));
  ASSERT_OK(read(Json::array({"a", "b"}), MetricKind::kDistinct));
  EXPECT_EQ(value.members, (std::vector<std::string>{"a", "b"}));
  ASSERT_OK(read("c", MetricKind::kDistinct));
  EXPECT_EQ(value.members, std::vector<std::string>{"c"});
  EXPECT_FALSE(read(UINT64_MAX, MetricKind::kValue).ok());
  EXPECT_FALSE(read(Json::array({"a", 1}), MetricKind::kDistinct).ok());
  EXPECT_FALSE(read(Json::object(), MetricKind::kDistribution).ok());
  EXPECT_FALSE(read(Json::array({Json::array()}), MetricKind::kDistribution).ok());
}

}  // namespace
}  // namespace kvstore::cli
