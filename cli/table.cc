#include "cli/table.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/escape.h"

namespace kvstore::cli {
namespace {

/// A part of a table is written when it has more than this.
constexpr size_t kMaxRows = 1000;
constexpr size_t kMaxBytes = size_t{1} << 20;

/// Characters, not bytes: continuation bytes of UTF-8 take no room.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> heading) : widths_(heading.size(), 0) {
  rows_.push_back(std::move(heading));
}

void Table::Add(std::vector<std::string> row) {
  for (std::string& cell : row) {
    cell = Printable(cell, Lines::kOne);
    bytes_ += cell.size();
  }
  rows_.push_back(std::move(row));
  is_empty_ = false;
  if (rows_.size() > kMaxRows || bytes_ > kMaxBytes) PrintPart();
}

void Table::Print() {
  if (is_empty_) {
    WriteOut("(none)\n");
  } else {
    PrintPart();
  }
}

void Table::PrintPart() {
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], Width(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths_[i] - Width(row[i]) + 2, ' ');
    }
    WriteOut(line + "\n");
  }
  rows_.clear();
  bytes_ = 0;
}

std::string UtcText(uint64_t at_ms) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(at_ms / 1000)));
}

}  // namespace kvstore::cli
