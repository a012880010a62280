#pragma once

#include <string>
#include <string_view>

namespace kvstore::columnar {

/// Appends text as a JSON string.
///
/// text  UTF-8.
void AppendString(std::string& out, std::string_view text);

/// Appends bytes in the form of our JSON: a string if they are UTF-8, else {"b64": "..."}.
void AppendBytes(std::string& out, std::string_view bytes);

}  // namespace kvstore::columnar
