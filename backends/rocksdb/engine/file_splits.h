#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/rocksdb/engine/engine.h"

namespace kvstore::rocks {

/// Splits a family into about `wanted` ranges of similar size at places where its files begin, and returns
/// where all ranges but the first begin, ascending. Keys that are only in memory are not split, so a small
/// dataset is one range.
///
/// place_of  returns the place to which a file's lowest key belongs, a row for example; nullopt if the file
///           cannot be split there. Keys must have the order of their places.
std::vector<std::string> SplitByFiles(
    Engine& engine, const Family& family, size_t wanted,
    const std::function<std::optional<std::string>(std::string_view key)>& place_of);

}  // namespace kvstore::rocks
