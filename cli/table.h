#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvstore::cli {

/// Rows of text in aligned columns under a heading, for people.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  /// Adds a row. Its cells may come from a server: they are made Printable, each as one line.
  void Add(std::vector<std::string> row);
  /// Writes the table to standard output; only "(none)" if no row was added. Throws OutputLost.
  void Print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Formats a time in ms since 1970 for people, in UTC: "2026-11-23 04:03:00".
std::string UtcText(uint64_t at_ms);

}  // namespace kvstore::cli
