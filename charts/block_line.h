#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace kvstore::charts {

/// Draws values as one line of block characters (UTF-8), from the least, ▁, to the greatest, █; values that
/// are all the same are ▄. A missing value is a space.
///
/// values  each is missing or finite.
/// width   the most characters, at least 1. Where there are more values, neighbours share a character, which
///         stands for the greatest of them, so that peaks stay visible.
std::string BlockLine(std::span<const std::optional<double>> values, size_t width);

}  // namespace kvstore::charts
