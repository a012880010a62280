#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kvstore_api/json.h"

/// Bytes in JSON: a string for what is UTF-8, `{"b64": "..."}` for anything (standard alphabet, padded).
namespace kvstore {

/// A plain string if `bytes` are valid UTF-8, else the b64 form.
Json BytesToJson(std::string_view bytes);

/// Reads either form. INVALID_ARGUMENT says what is wrong, without naming the field.
absl::StatusOr<std::string> BytesFromJson(const Json& json);

/// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view bytes);

}  // namespace kvstore
