#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

/// How `kv export` reads what it writes: the counterpart of LineLoader.
namespace kvstore::cli {

/// Reads the data of one dataset as lines of JSON, which `kv import` loads. Externally synchronised.
class LineSource {
 public:
  virtual ~LineSource() = default;

  /// Sets `line` to the next line, without a newline. False at the end.
  [[nodiscard]] virtual absl::StatusOr<bool> Next(std::string& line) = 0;

  /// Returns what the lines so far have, each with its name in the plural: {{"rows", 2}, {"cells", 3}}.
  [[nodiscard]] virtual std::vector<std::pair<std::string, uint64_t>> Counts() const = 0;
};

}  // namespace kvstore::cli
