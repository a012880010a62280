#pragma once

#include <string>

#include "kvstore_api/json.h"

namespace kvstore {

/// JSON as text. Where a string is not UTF-8, as what a host or another server has said may be, U+FFFD stands
/// for what is not: nlohmann's own dump() throws then.
///
/// indent  as of nlohmann's dump(); -1: all on one line.
std::string TextOf(const Json& json, int indent = -1);

}  // namespace kvstore
