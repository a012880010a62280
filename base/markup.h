#pragma once

#include <string>
#include <string_view>

namespace kvstore {

/// Returns text with the characters escaped that mean something in XML, and so in HTML and SVG: for text
/// between tags and in attributes with double quotes.
std::string EscapeMarkup(std::string_view text);

}  // namespace kvstore
