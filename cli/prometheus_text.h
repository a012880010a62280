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

  /// The value of a label; empty if there is none.
  std::string Label(std::string_view label) const;
  /// `name{label="value",...}`, or only the name.
  std::string Text() const;
};

/// The samples of a text, in order; lines that are none are passed over.
std::vector<Sample> ParsePrometheus(std::string_view text);

}  // namespace kvstore::cli
