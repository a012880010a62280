#include "charts/line_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace kvstore::charts {
namespace {

bool Has(const std::string& svg, const std::string& part) { return svg.find(part) != std::string::npos; }

size_t Count(const std::string& svg, const std::string& part) {
  size_t count = 0;
  for (size_t at = svg.find(part); at != std::string::npos; at = svg.find(part, at + 1)) ++count;
  return count;
}

/// Numbers that no picture may have: they would be places outside of it.
void ExpectSoundNumbers(const std::string& svg) {
  for (const char* const bad : {"nan", "inf", "\"-"}) EXPECT_FALSE(Has(svg, bad)) << bad << " is in " << svg;
}

TEST(LineChart, EscapesAndHasAllLinesWithinItsFrame) {
  const LineChart chart{.title = "a<b",
                        .unit = "ms",
                        .logarithmic = true,
                        .end = 3,
                        .axis = "min&utes",
                        .marks = {{1, "one \"o'clock\""}},
                        .lines = {{"one", {{0.5, 0}, {1.5, 5}, {2.5, 1e6}}}, {"two", {}}},
                        .bands = {{0.5, 1}},
                        .band_name = "band",
                        .phases = {{0, "A"}}};
  const std::string svg = ToSvg(chart);
  EXPECT_FALSE(Has(svg, "a<b"));
  for (const char* const part :
       {"a&lt;b", ">one<", ">two<", ">band<", ">A<", "1e+06 ms", "min&amp;utes", "&quot;"}) {
    EXPECT_TRUE(Has(svg, part)) << part << " is not in " << svg;
  }
  ExpectSoundNumbers(svg);
  EXPECT_EQ(svg.rfind("</svg>\n"), svg.size() - 7);
}

TEST(LineChart, IsLightOrDarkAsItsReaderPrefers) {
  const std::string svg = ToSvg({.lines = {{"one", {{0, 1}, {1, 2}}}}});
  EXPECT_TRUE(Has(svg, "@media (prefers-color-scheme:dark)"));
  EXPECT_FALSE(Has(svg, "href")) << "it needs nothing from elsewhere";
}

TEST(LineChart, AGapEndsALine) {
  const double gap = std::nan("");
  const std::string svg =
      ToSvg({.end = 6, .lines = {{"one", {{0, 1}, {1, 2}, {2, gap}, {3, 5}, {4, gap}, {5, 1}, {6, 1}}}}});
  EXPECT_EQ(Count(svg, "<polyline"), 2u);
  EXPECT_EQ(Count(svg, "<circle"), 1u) << "a point without neighbours is a dot";
  ExpectSoundNumbers(svg);
}

TEST(LineChart, ScalesHaveRoundStepsAndZero) {
  const std::string svg = ToSvg({.unit = "", .lines = {{"one", {{0, -30}, {1, 70}}}}});
  for (const char* const mark : {">-50<", ">-25<", ">0<", ">25<", ">50<", ">75<"}) {
    EXPECT_TRUE(Has(svg, mark)) << mark << " is not in " << svg;
  }
  EXPECT_FALSE(Has(svg, ">-0<"));
}

TEST(LineChart, ValuesOfAnySizeHaveAPlace) {
  constexpr double kMost = std::numeric_limits<double>::max();
  for (const double value : {0.0, 1e-320, 1e-9, -1e-9, 1e300, kMost, -kMost}) {
    ExpectSoundNumbers(ToSvg({.lines = {{"one", {{0, value}, {1, -value}}}}}));
    ExpectSoundNumbers(ToSvg({.logarithmic = true, .lines = {{"one", {{0, value}, {1, std::nan("")}}}}}));
  }
  ExpectSoundNumbers(ToSvg({}));
}

TEST(LineChart, NamesOfManyLinesStandApartAndWithinThePicture) {
  LineChart chart;
  for (int i = 0; i < 40; ++i) chart.lines.push_back({"line " + std::to_string(i), {{0, 1}, {1, 1}}});
  const std::string svg = ToSvg(chart);
  double last = 0;
  const size_t height_at = svg.find("height=\"") + 8;
  const double height = std::stod(svg.substr(height_at));
  size_t names = 0;
  for (size_t at = svg.find("<text class=\"f"); at != std::string::npos;
       at = svg.find("<text class=\"f", at + 1)) {
    const size_t y_at = svg.find(" y=\"", at) + 4;
    const double y = std::stod(svg.substr(y_at));
    if (names++ > 0) {
      EXPECT_GE(y - last, 13.9);
    }
    EXPECT_LT(y, height);
    last = y;
  }
  EXPECT_EQ(names, 40u);
  EXPECT_TRUE(Has(svg, "stroke-dasharray=\"8 3\"")) << "lines of one colour differ";
}

TEST(LineChart, LongNamesAreCutBetweenCharacters) {
  const std::string svg = ToSvg({.lines = {{std::string(50, 'a'), {}}, {"ä" + std::string(60, 'b'), {}}}});
  EXPECT_TRUE(Has(svg, ">" + std::string(35, 'a') + "…<")) << svg;
  EXPECT_TRUE(Has(svg, ">ä" + std::string(34, 'b') + "…<")) << svg;
}

}  // namespace
}  // namespace kvstore::charts
