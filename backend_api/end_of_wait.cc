#include "backend_api/end_of_wait.h"

#include <fmt/format.h>

#include <string>

namespace kvstore {

absl::Status EndOfWait(const absl::Status& over, std::string_view waited_for) {
  if (waited_for.empty()) return over;
  return absl::Status(over.code(), fmt::format("{}; it waited: {}", std::string(over.message()), waited_for));
}

}  // namespace kvstore
