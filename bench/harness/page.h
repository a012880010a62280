#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A report of measurements as one HTML file with pictures, without scripts or external resources. Debian has
/// no C++ library of charts that writes files instead of opening windows.
namespace kvstore::bench {

/// The quantiles that a curve of latencies shows.
inline constexpr std::array<std::string_view, 5> kCurvePoints = {"p50", "p90", "p99", "p99.9", "max"};

struct Bar {
  std::string name;
  double value = 0;
  double min = 0;
  double max = 0;
};

struct Curve {
  std::string name;
  std::array<double, kCurvePoints.size()> us{};
};

/// A part of the page: bars of one unit, and curves of latencies; either may be empty.
struct Section {
  std::string title;
  std::vector<Bar> bars;
  std::vector<Curve> curves;
};

struct Page {
  std::string title;
  std::vector<std::pair<std::string, std::string>>
      facts;  ///< Names and values that describe the machine and the settings.
  std::vector<Section> sections;
};

/// Returns the page. Texts may contain any characters: they are escaped.
std::string ToHtml(const Page& page);

}  // namespace kvstore::bench
