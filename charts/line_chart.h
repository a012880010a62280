#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Draws lines over time as an SVG picture without external resources, light or dark as its reader prefers.
namespace kvstore::charts {

struct LineChart {
  /// x is in whatever unit `begin` and `end` have; a y that is not finite is a gap in the line.
  struct Point {
    double x = 0;
    double y = 0;
  };
  struct Line {
    std::string name;
    std::vector<Point> points;  ///< By x, ascending.
  };
  /// A stretch of x that is shaded.
  struct Band {
    double begin = 0;
    double end = 0;
  };
  /// A text at a place of x.
  struct Mark {
    double x = 0;
    std::string text;
  };

  std::string title;
  std::string unit;          ///< Unit of y, "ms" for example.
  bool logarithmic = false;  ///< Values below a thousandth count as one.
  double begin = 0;          ///< The picture goes from here ...
  double end = 1;            ///< ... to here, which is greater.
  std::string axis;          ///< The name of x: "minutes".
  std::vector<Mark> marks;   ///< Below the picture.
  std::vector<Line> lines;   ///< The picture is empty if there are none.
  std::vector<Band> bands;
  std::string band_name;     ///< Name of all bands.
  std::vector<Mark> phases;  ///< The beginnings of phases, marked above the picture.
};

/// Returns the picture. Texts may contain any characters that XML has: they are escaped. Long names of lines
/// are cut.
std::string ToSvg(const LineChart& chart);

}  // namespace kvstore::charts
