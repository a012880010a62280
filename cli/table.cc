#include "cli/table.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/escape.h"

namespace kvstore::cli {
namespace {

/// Characters, not bytes: continuation bytes of UTF-8 take no room.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = Printable(cell, Lines::kOne);
  rows_.push_back(std::move(row));
}

void Table::Print() const {
  if (rows_.size() == 1) {
    WriteOut("(none)\n");
    return;
  }
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    WriteOut(line + "\n");
  }
}

std::string UtcText(uint64_t at_ms) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(at_ms / 1000)));
}

}  // namespace kvstore::cli
