#include "charts/block_line.h"

#include <algorithm>
#include <array>
#include <vector>

namespace kvstore::charts {
namespace {

constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/// One value for each character.
std::vector<std::optional<double>> Columns(std::span<const std::optional<double>> values, size_t width) {
  const size_t count = std::min(values.size(), width);
  std::vector<std::optional<double>> columns(count);
  for (size_t i = 0; i < values.size(); ++i) {
    std::optional<double>& column = columns[i * count / values.size()];
    if (values[i] && (!column || *column < *values[i])) column = values[i];
  }
  return columns;
}

}  // namespace

std::string BlockLine(std::span<const std::optional<double>> values, size_t width) {
  const std::vector<std::optional<double>> columns = Columns(values, width);
  std::optional<double> least;
  std::optional<double> greatest;
  for (const std::optional<double>& column : columns) {
    if (!column) continue;
    least = std::min(least.value_or(*column), *column);
    greatest = std::max(greatest.value_or(*column), *column);
  }
  std::string line;
  for (const std::optional<double>& column : columns) {
    if (!column) {
      line += ' ';
      continue;
    }
    size_t block = kBlocks.size() / 2 - 1;
    if (*least < *greatest) {
      // The halves keep the difference of two very large numbers finite.
      const double part = (*column / 2 - *least / 2) / (*greatest / 2 - *least / 2);
      const auto level = static_cast<size_t>(part * static_cast<double>(kBlocks.size()));
      block = std::min(level, kBlocks.size() - 1);
    }
    line += kBlocks.at(block);
  }
  return line;
}

}  // namespace kvstore::charts
