#include "json/json_text.h"

#include <nlohmann/json.hpp>

namespace kvstore {

std::string TextOf(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace kvstore
