#pragma once

#include <string>

#include "json/json.h"

namespace kvstore {

/// Returns JSON as text. Bytes of a string that are not UTF-8, as a host or another server may have sent, are
/// replaced by U+FFFD; nlohmann's own dump() would throw.
///
/// indent  as in nlohmann's dump(); -1 puts all on one line.
std::string TextOf(const Json& json, int indent = -1);

}  // namespace kvstore
