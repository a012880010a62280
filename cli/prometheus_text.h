#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvstore::cli {

/// One line of Prometheus' text format.
struct Sample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;

  /// Returns the value of a label; empty if there is none.
  std::string Label(std::string_view label) const;
  /// Returns `name{label="value",...}`, or only the name.
  std::string Text() const;
};

/// Returns the samples of a text, in order; skips all other lines.
std::vector<Sample> ParsePrometheus(std::string_view text);

}  // namespace kvstore::cli
