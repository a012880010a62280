#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/exec_protocol.h"
#include "registry/open.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace kvstore;

/// A store with a dataset of each shape, which lives as long as the process.
KVStore& Store() {
  static const testing::TempDir dir;
  static const auto store = [] {
    auto opened = Open({.data = dir / "store"});
    if (!opened.ok() || !(*opened)->CreateDataset({.name = "r", .max_versions = 0}).ok() ||
        !(*opened)->CreateDataset({.name = "o", .shape = Shape::kObjects, .type = 1}).ok() ||
        !(*opened)->CreateDataset({.name = "m", .shape = Shape::kMappings}).ok()) {
      std::abort();
    }
    return *std::move(opened);
  }();
  return *store;
}

}  // namespace

/// Any bytes as a line of `kv exec`: one line of JSON comes back, which says whether it went well.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const std::string answer = cli::Execute(Store(), line);
  if (answer.find('\n') != std::string::npos) std::abort();
  const auto json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("ok") || !json["ok"].is_boolean()) std::abort();
  if (json["ok"] == false && !json["error"]["message"].is_string()) std::abort();
  return 0;
}
