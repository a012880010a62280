#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvstore::cli {

/// Rows of text in aligned columns under a heading, for people. A long table is written to standard output in
/// parts while rows are added, so that memory stays bounded. Columns can get wider from one part to the next,
/// never narrower. Not thread-safe.
class Table {
 public:
  explicit Table(std::vector<std::string> heading);
  /// Adds a row. Its cells may come from a server: they are made Printable, each as one line. Throws
  /// OutputLost.
  void Add(std::vector<std::string> row);
  /// Writes what was not written yet; only "(none)" if no row was added. Throws OutputLost.
  void Print();

 private:
  void PrintPart();

  std::vector<std::vector<std::string>> rows_;  // the heading is the first one
  std::vector<size_t> widths_;                  // of the columns
  size_t bytes_ = 0;                            // of rows_
  bool is_empty_ = true;
};

/// Formats a time in ms since 1970 for people, in UTC: "2026-11-23 04:03:00".
std::string UtcText(uint64_t at_ms);

}  // namespace kvstore::cli
