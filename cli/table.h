#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvstore::cli {

/// Rows of text in aligned columns under a heading, for people.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  /// The cells may be what a server sent: they are shown as Printable makes them, in one line each.
  void Add(std::vector<std::string> row);
  /// Writes to standard output; just "(none)" if no row was added. Throws OutputLost.
  void Print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "2026-11-23 04:03:00": a time in ms since 1970, in UTC, for people.
std::string UtcText(uint64_t at_ms);

}  // namespace kvstore::cli
