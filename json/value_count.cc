#include "json/value_count.h"

namespace kvstore {

size_t CountJsonValues(std::string_view text) {
  size_t count = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {
      // Each value but the first one follows one of these.
      ++count;
    }
  }
  return count;
}

}  // namespace kvstore
