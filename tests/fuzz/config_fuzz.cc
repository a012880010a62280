#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "assembly/config.h"

using namespace kvstore;

/// Any bytes as a configuration are accepted, or refused with a reason.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = ParseConfig(text, "/nowhere");
  if (!config.ok() && (!absl::IsInvalidArgument(config.status()) || config.status().message().empty()))
    std::abort();
  return 0;
}
