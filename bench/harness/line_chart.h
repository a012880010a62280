#pragma once

#include <string>
#include <utility>
#include <vector>

/// Draws lines over time as an SVG picture for documents: on white, with fixed colours, without external
/// resources.
namespace kvstore::bench {

struct LineChart {
  struct Line {
    std::string name;
    std::vector<double> values;  ///< One value a minute.
  };
  /// A period that is shaded.
  struct Band {
    double begin_minute = 0;
    double end_minute = 0;
  };

  std::string title;
  std::string unit;          ///< Unit of the values, "ms" for example.
  bool logarithmic = false;  ///< Values below a thousandth count as one.
  std::vector<Line> lines;   ///< All of the same length.
  std::vector<Band> bands;
  std::string band_name;                               ///< Name of all bands.
  std::vector<std::pair<double, std::string>> phases;  ///< The minute at which a phase begins, and its name.
};

/// Returns the picture. Texts may contain any characters: they are escaped.
std::string ToSvg(const LineChart& chart);

}  // namespace kvstore::bench
