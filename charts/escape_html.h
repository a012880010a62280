#pragma once

#include <string>
#include <string_view>

namespace kvstore::charts {

/// Escapes text for HTML and SVG.
std::string EscapeHtml(std::string_view text);

}  // namespace kvstore::charts
