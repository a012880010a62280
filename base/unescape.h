#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kvstore {

/// Replaces \\ by \ and \xNN by the byte with these two hexadecimal digits: the notation in which commands
/// take and show bytes. Appends the result to `out`. Returns where the first \ is that begins neither;
/// nothing if there is none.
std::optional<size_t> AppendUnescaped(std::string_view text, std::string& out);

}  // namespace kvstore
