#include "charts/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/markup.h"

namespace kvstore::charts {
namespace {

constexpr int kWidth = 960;
constexpr int kLeft = 80;
constexpr int kTop = 62;
constexpr int kBelow = 40;  // under the picture, for the marks and the name of x
constexpr int kLeastHeight = 340;
constexpr int kNameHeight = 14;
constexpr size_t kMaxNameCharacters = 36;
constexpr int kCharacterWidth = 7;
constexpr double kLeast = 1e-3;      // on a logarithmic scale
constexpr double kGreatest = 1e300;  // so that no difference is infinite

struct Color {
  const char* light;
  const char* dark;
};
constexpr std::array<Color, 8> kColors = {{{"#2563a8", "#6aa5e3"},
                                           {"#b5482f", "#e58a70"},
                                           {"#2f7d52", "#6fc391"},
                                           {"#7a4ea3", "#b890de"},
                                           {"#a06a00", "#d9a441"},
                                           {"#0f7f8c", "#58c4d0"},
                                           {"#a8326b", "#e57fb0"},
                                           {"#56616e", "#9aa6b4"}}};

std::string StyleOf(const char* Color::*shade, const char* paper, const char* ink, const char* grid,
                    const char* band) {
  std::string style = fmt::format(".paper{{fill:{}}}text{{fill:{}}}.grid{{stroke:{}}}.band{{fill:{}}}", paper,
                                  ink, grid, band);
  for (size_t i = 0; i < kColors.size(); ++i) {
    style += fmt::format(".s{0}{{stroke:{1}}}.f{0}{{fill:{1}}}", i, kColors.at(i).*shade);
  }
  return style;
}

std::string Style() {
  return "<style>.s{fill:none;stroke-width:1.6}.phase{stroke:#7d8794;stroke-dasharray:4 3}" +
         StyleOf(&Color::light, "#ffffff", "#1d2430", "#d0d5dd", "#e3e7ee") +
         "@media (prefers-color-scheme:dark){" +
         StyleOf(&Color::dark, "#14181e", "#e6e9ee", "#343b46", "#262d38") + "}</style>\n";
}

size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// The text, or its beginning if it is too long to stand beside the picture.
std::string Shortened(const std::string& text) {
  if (Characters(text) <= kMaxNameCharacters) return text;
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && ++characters == kMaxNameCharacters) break;
  }
  return text.substr(0, end) + "…";
}

/// The sizes of a picture, which depend on its lines.
struct Frame {
  explicit Frame(const LineChart& chart) {
    size_t longest = 0;
    for (const LineChart::Line& line : chart.lines)
      longest = std::max(longest, Characters(Shortened(line.name)));
    right = kWidth - std::max(110, static_cast<int>(longest) * kCharacterWidth + 16);
    height = std::max(kLeastHeight, kTop + kBelow + kNameHeight * (static_cast<int>(chart.lines.size()) + 1));
    bottom = height - kBelow;
  }
  int right;  // names of lines stand beside it
  int height;
  int bottom;
};

/// Translates values into places on the vertical axis.
class Scale {
 public:
  Scale(const LineChart& chart, const Frame& frame) : logarithmic_(chart.logarithmic), bottom_(frame.bottom) {
    double least = 0;
    double most = 0;
    double least_positive = kGreatest;
    for (const LineChart::Line& line : chart.lines) {
      for (const LineChart::Point& point : line.points) {
        if (!std::isfinite(point.y)) continue;
        const double y = std::clamp(point.y, -kGreatest, kGreatest);
        least = std::min(least, y);
        most = std::max(most, y);
        least_positive = std::min(least_positive, std::max(y, kLeast));
      }
    }
    if (logarithmic_) {
      most = std::max(most, kLeast);
      low_ = std::floor(std::log10(std::min(least_positive, most)));
      high_ = std::max(low_ + 1, std::ceil(std::log10(most)));
      for (int power = 0; low_ + power <= high_; ++power) marks_.push_back(std::pow(10.0, low_ + power));
      return;
    }
    if (most - least < 1 / kGreatest) most = least + 1;
    // Four or five round steps, one of which is zero.
    const double rough = most / 4 - least / 4;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.5, 2.0, 1.0}) {
      if (factor * power >= rough) step = factor * power;
    }
    const auto first = static_cast<int>(std::floor(least / step));
    const auto last = static_cast<int>(std::ceil(most / step));
    for (int i = first; i <= last; ++i) marks_.push_back(i * step);
    low_ = marks_.front();
    high_ = marks_.back();
  }

  double Y(double value) const {
    const double at =
        logarithmic_ ? std::log10(std::clamp(value, kLeast, kGreatest)) : std::clamp(value, low_, high_);
    return bottom_ - (at - low_) / (high_ - low_) * (bottom_ - kTop);
  }
  const std::vector<double>& marks() const { return marks_; }

 private:
  const bool logarithmic_;
  const int bottom_;
  double low_ = 0;
  double high_ = 1;
  std::vector<double> marks_;
};

/// Writes the parts of a picture one after the other.
class Picture {
 public:
  explicit Picture(const LineChart& chart) : chart_(chart), frame_(chart), scale_(chart, frame_) {}

  std::string Draw() {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{2}\">\n{4}"
        "<rect class=\"paper\" width=\"{0}\" height=\"{1}\"/>\n<text x=\"{3}\" y=\"20\" font-size=\"15\">{2}"
        "</text>\n",
        kWidth, frame_.height, EscapeMarkup(chart_.title), kLeft, Style());
    DrawBands();
    DrawAxes();
    DrawPhases();
    DrawLines();
    return svg_ + "</svg>\n";
  }

 private:
  double X(double x) const {
    return kLeft + (x - chart_.begin) / (chart_.end - chart_.begin) * (frame_.right - kLeft);
  }

  void DrawBands() {
    for (const LineChart::Band& band : chart_.bands) {
      svg_ +=
          fmt::format("<rect class=\"band\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n",
                      X(band.begin), kTop, std::max(X(band.end) - X(band.begin), 1.0), frame_.bottom - kTop);
    }
    if (chart_.bands.empty()) return;
    svg_ += fmt::format(
        "<rect class=\"band\" x=\"{}\" y=\"10\" width=\"12\" height=\"12\"/><text x=\"{}\" "
        "y=\"20\">{}</text>\n",
        frame_.right - 100, frame_.right - 82, EscapeMarkup(chart_.band_name));
  }

  void DrawAxes() {
    for (const double mark : scale_.marks()) {
      svg_ += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" "
          "y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5:g}{6}{7}</text>\n",
          kLeft, frame_.right, scale_.Y(mark), kLeft - 6, scale_.Y(mark) + 4, mark,
          chart_.unit.empty() ? "" : " ", EscapeMarkup(chart_.unit));
    }
    for (const LineChart::Mark& mark : chart_.marks) {
      svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", X(mark.x),
                          frame_.bottom + 18, EscapeMarkup(mark.text));
    }
    svg_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                        (kLeft + frame_.right) / 2, frame_.bottom + 34, EscapeMarkup(chart_.axis));
  }

  void DrawPhases() {
    for (const LineChart::Mark& phase : chart_.phases) {
      svg_ += fmt::format(
          "<line class=\"phase\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{3:.1f}\" "
          "y=\"{4}\">{5}</text>\n",
          X(phase.x), kTop - 16, frame_.bottom, X(phase.x) + 4, kTop - 8, EscapeMarkup(phase.text));
    }
  }

  /// Returns where the name of a line would stand if it had no neighbours.
  double EndOf(const LineChart::Line& line) const {
    for (auto point = line.points.rbegin(); point != line.points.rend(); ++point) {
      if (std::isfinite(point->y)) return scale_.Y(point->y);
    }
    return frame_.bottom;
  }

  void DrawLines() {
    // Names stand beside the ends of their lines, apart from each other.
    std::vector<size_t> order(chart_.lines.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return EndOf(chart_.lines[a]) < EndOf(chart_.lines[b]); });
    double last = kTop - kNameHeight;
    for (size_t rank = 0; rank < order.size(); ++rank) {
      const LineChart::Line& line = chart_.lines[order[rank]];
      DrawLine(line, order[rank]);
      // Names that are still to come must find room above the bottom.
      const double lowest = frame_.bottom + 4.0 - kNameHeight * static_cast<double>(order.size() - 1 - rank);
      last = std::max(last + kNameHeight, std::min(EndOf(line) + 4, lowest));
      svg_ +=
          fmt::format("<text class=\"f{}\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", order[rank] % kColors.size(),
                      frame_.right + 8, last, EscapeMarkup(Shortened(line.name)));
    }
  }

  void DrawLine(const LineChart::Line& line, size_t number) {
    // Lines that share a colour differ in their dashes.
    const size_t round = number / kColors.size();
    const std::string dashes = round == 0 ? ""
                                          : fmt::format(" stroke-dasharray=\"{} {}\"",
                                                        8 / std::min<size_t>(round, 8), 2 + round % 3);
    std::string points;
    size_t count = 0;
    const auto finish = [&] {
      if (count == 1) {
        const size_t comma = points.find(',');
        svg_ += fmt::format("<circle class=\"f{}\" cx=\"{}\" cy=\"{}\" r=\"2\"/>\n", number % kColors.size(),
                            points.substr(0, comma), points.substr(comma + 1, points.size() - comma - 2));
      } else if (count > 1) {
        svg_ += fmt::format("<polyline class=\"s s{}\"{} points=\"{}\"/>\n", number % kColors.size(), dashes,
                            points);
      }
      points.clear();
      count = 0;
    };
    for (const LineChart::Point& point : line.points) {
      if (std::isfinite(point.y)) {
        points += fmt::format("{:.1f},{:.1f} ", X(point.x), scale_.Y(point.y));
        ++count;
      } else {
        finish();
      }
    }
    finish();
  }

  const LineChart& chart_;
  const Frame frame_;
  const Scale scale_;
  std::string svg_;
};

}  // namespace

std::string ToSvg(const LineChart& chart) { return Picture(chart).Draw(); }

}  // namespace kvstore::charts
