#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "json/json.h"

/// Bytes in JSON: a string if they are UTF-8, else `{"b64": "..."}` (base64 of the standard alphabet,
/// padded).
namespace kvstore {

/// Returns a plain string if `bytes` are valid UTF-8, else the b64 form.
Json BytesToJson(std::string_view bytes);

/// Reads either form. INVALID_ARGUMENT says what is wrong; the caller adds the name of the field.
absl::StatusOr<std::string> BytesFromJson(const Json& json);

/// Whether `bytes` are well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view bytes);

}  // namespace kvstore
