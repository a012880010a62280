#include "json/bytes_json.h"

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"

namespace kvstore {

bool IsUtf8(std::string_view bytes) {
  namespace utf = boost::locale::utf;
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at != end) {
    const utf::code_point point = utf::utf_traits<char>::decode(at, end);
    if (point == utf::illegal || point == utf::incomplete) return false;
  }
  return true;
}

Json BytesToJson(std::string_view bytes) {
  if (IsUtf8(bytes)) return Json(bytes);
  return Json{{"b64", absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()))}};
}

absl::StatusOr<std::string> BytesFromJson(const Json& json) {
  if (json.is_string()) return json.get_ref<const std::string&>();
  if (!json.is_object() || json.size() != 1 || !json.contains("b64") || !json["b64"].is_string()) {
    return absl::InvalidArgumentError("must be a string or {\"b64\": \"...\"}");
  }
  const auto& text = json["b64"].get_ref<const std::string&>();
  std::string bytes;
  // The decoder accepts blanks and missing padding; encoding the result again shows whether there were any.
  if (!absl::Base64Unescape(text, &bytes) || absl::Base64Escape(bytes) != text) {
    return absl::InvalidArgumentError("b64 is not base64 of the standard alphabet, padded");
  }
  return bytes;
}

}  // namespace kvstore
