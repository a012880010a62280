#include "bench/harness/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "bench/harness/page.h"

namespace kvstore::bench {
namespace {

constexpr int kWidth = 960;
constexpr int kHeight = 340;
constexpr int kLeft = 70;
constexpr int kRight = kWidth - 110;  // names of lines stand beside it
constexpr int kTop = 62;
constexpr int kBottom = kHeight - 40;
constexpr double kLeast = 1e-3;
constexpr std::array<const char*, 5> kColors = {"#2563a8", "#b5482f", "#2f7d52", "#7a4ea3", "#a06a00"};

/// Where values lie.
class Scale {
 public:
  explicit Scale(const LineChart& chart) : logarithmic_(chart.logarithmic) {
    double least = 1e18;
    double most = kLeast;
    for (const LineChart::Line& line : chart.lines) {
      for (const double value : line.values) {
        least = std::min(least, std::max(value, kLeast));
        most = std::max(most, value);
      }
    }
    if (logarithmic_) {
      low_ = std::floor(std::log10(std::min(least, most)));
      high_ = std::max(low_ + 1, std::ceil(std::log10(most)));
      for (double power = low_; power <= high_; ++power) marks_.push_back(std::pow(10.0, power));
      return;
    }
    // Four or five round steps.
    const double rough = most / 4;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.5, 2.0, 1.0}) {
      if (factor * power >= rough) step = factor * power;
    }
    high_ = std::ceil(most / step) * step;
    for (double mark = 0; mark <= high_ + step / 2; mark += step) marks_.push_back(mark);
  }

  double Y(double value) const {
    const double at = logarithmic_ ? std::log10(std::max(value, kLeast)) : value;
    return kBottom - (at - low_) / (high_ - low_) * (kBottom - kTop);
  }
  const std::vector<double>& marks() const { return marks_; }

 private:
  const bool logarithmic_;
  double low_ = 0;
  double high_ = 1;
  std::vector<double> marks_;
};

}  // namespace

std::string ToSvg(const LineChart& chart) {
  size_t minutes = 1;
  for (const LineChart::Line& line : chart.lines) minutes = std::max(minutes, line.values.size());
  const auto total = static_cast<double>(minutes);
  const auto x = [&](double minute) { return kLeft + minute / total * (kRight - kLeft); };
  const Scale scale(chart);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{2}\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{3}\" y=\"20\" font-size=\"15\">{2}"
      "</text>\n",
      kWidth, kHeight, EscapeHtml(chart.title), kLeft);
  for (const LineChart::Band& band : chart.bands) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#e3e7ee\"/>\n",
                       x(band.begin_minute), kTop, std::max(x(band.end_minute) - x(band.begin_minute), 1.0),
                       kBottom - kTop);
  }
  if (!chart.bands.empty()) {
    svg += fmt::format(
        "<rect x=\"{}\" y=\"10\" width=\"12\" height=\"12\" fill=\"#e3e7ee\"/><text x=\"{}\" y=\"20\">{}"
        "</text>\n",
        kRight - 100, kRight - 82, EscapeHtml(chart.band_name));
  }
  for (const double mark : scale.marks()) {
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#d0d5dd\"/><text x=\"{3}\" "
        "y=\"{4:.1f}\" text-anchor=\"end\">{5:g} {6}</text>\n",
        kLeft, kRight, scale.Y(mark), kLeft - 6, scale.Y(mark) + 4, mark, EscapeHtml(chart.unit));
  }
  for (const auto& [from, name] : chart.phases) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#555\" stroke-dasharray=\"4 3\"/>"
        "<text x=\"{3:.1f}\" y=\"{4}\">{5}</text>\n",
        x(from), kTop - 16, kBottom, x(from) + 4, kTop - 8, EscapeHtml(name));
  }
  const size_t step = std::max<size_t>(minutes / 12, 1);
  for (size_t minute = 0; minute <= minutes; minute += step) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       x(static_cast<double>(minute)), kBottom + 18, minute);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">minutes</text>\n", (kLeft + kRight) / 2,
                     kBottom + 34);
  // Names beside the ends of their lines, apart from each other.
  std::vector<size_t> order(chart.lines.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto end_of = [&](size_t line) {
    const std::vector<double>& values = chart.lines[line].values;
    return scale.Y(values.empty() ? 0 : values.back());
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return end_of(a) < end_of(b); });
  double last = kTop - 14;
  for (const size_t i : order) {
    const LineChart::Line& line = chart.lines[i];
    const char* const color = kColors.at(i % kColors.size());
    std::string points;
    for (size_t minute = 0; minute < line.values.size(); ++minute) {
      points +=
          fmt::format("{:.1f},{:.1f} ", x(static_cast<double>(minute) + 0.5), scale.Y(line.values[minute]));
    }
    last = std::max(last + 14, end_of(i) + 4);
    svg += fmt::format(
        "<polyline fill=\"none\" stroke=\"{0}\" stroke-width=\"1.6\" points=\"{1}\"/>\n"
        "<text x=\"{2}\" y=\"{3:.1f}\" fill=\"{0}\">{4}</text>\n",
        color, points, kRight + 8, last, EscapeHtml(line.name));
  }
  return svg + "</svg>\n";
}

}  // namespace kvstore::bench
