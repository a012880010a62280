#include "export/parquet/json_text.h"

#include <arrow/util/base64.h>
#include <arrow/util/utf8.h>

namespace kvstore::columnar {

void AppendString(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[c & 0xF];
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendBytes(std::string& out, std::string_view bytes) {
  if (arrow::util::ValidateUTF8(bytes)) return AppendString(out, bytes);
  out += R"({"b64":")";
  out += arrow::util::base64_encode(bytes);
  out += R"("})";
}

}  // namespace kvstore::columnar
