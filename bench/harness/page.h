#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A report of measurements as one HTML file with pictures: no scripts, nothing that is loaded. Written here
/// because C++ has no library of charts in Debian that makes a file and no window.
namespace kvstore::bench {

/// Whose latencies a curve shows.
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

/// Bars of one unit, and latencies; either may be empty.
struct Section {
  std::string title;
  std::vector<Bar> bars;
  std::vector<Curve> curves;
};

struct Page {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< Machine and settings, by name.
  std::vector<Section> sections;
};

/// Texts may hold anything: they are escaped.
std::string ToHtml(const Page& page);

}  // namespace kvstore::bench
