#pragma once

#include <cstddef>
#include <string_view>

namespace kvstore {

/// The memory that a value of a parsed `Json` takes at most beside the bytes of its text, about: an element
/// of an array takes 16 bytes, twice that while the array grows, a member of an object 96 with its name, an
/// array or an object of its own 64 (nlohmann 3.11 and glibc).
inline constexpr size_t kJsonValueBytes = 128;

/// Returns how many values a JSON text has at most, nested ones included, without building any: two bytes are
/// enough for a value that takes a hundred in memory. The text need not be well-formed.
size_t CountJsonValues(std::string_view text);

}  // namespace kvstore
