#include "backends/cached/protocol/guard.h"

#include <nlohmann/json.hpp>

#include "json/json.h"
#include "json/json_fields.h"

namespace kvstore::cached {
namespace {

constexpr uint64_t kVersion = 1;

}  // namespace

std::string ToText(const Guard& guard) {
  Json left = Json::array();
  for (const auto& [incarnation, dataset] : guard.left) {
    left.push_back({{"incarnation", incarnation}, {"epoch", dataset.epoch}, {"trusted", dataset.trusted}});
  }
  return Json{{"version", kVersion},
              {"number", guard.number},
              {"trusted", guard.trusted},
              {"list", guard.list},
              {"left", left}}
      .dump();
}

std::optional<Guard> ParseGuard(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return std::nullopt;
  JsonFields fields(*json, "");
  Guard guard;
  fields.Uint("version", kVersion, kVersion);
  guard.number = fields.Uint("number", 0, UINT64_MAX);
  guard.trusted = fields.OptionalBool("trusted").value_or(false);
  guard.list = fields.Uint("list", 0, UINT64_MAX);
  for (const Json& one : fields.Array("left")) {
    JsonFields inner(one, "left.");
    const uint64_t incarnation = inner.Uint("incarnation", 0, UINT64_MAX);
    Guard::Dataset& dataset = guard.left[incarnation];
    dataset.epoch = inner.Uint("epoch", 0, UINT64_MAX);
    dataset.trusted = inner.OptionalBool("trusted").value_or(false);
    fields.FailAll(inner);
  }
  if (!fields.Finish().ok()) return std::nullopt;
  return guard;
}

}  // namespace kvstore::cached
