#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "json_api/execute.h"
#include "tests/fuzz/fuzz_store.h"

using namespace kvstore;

/// Any bytes as a line of `kv exec` are answered by one line of JSON, which says whether the request
/// succeeded.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const std::string answer = json_api::Execute(kvstore::testing::FuzzStore(), line);
  if (answer.find('\n') != std::string::npos) std::abort();
  const auto json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("ok") || !json["ok"].is_boolean()) std::abort();
  if (json["ok"] == false && !json["error"]["message"].is_string()) std::abort();
  return 0;
}
