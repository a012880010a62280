#include "backends/cached/protocol/guard.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/random_number.h"
#include "json/json.h"
#include "json/json_fields.h"

namespace kvstore::cached {
namespace {

constexpr uint64_t kVersion = 1;

}  // namespace

void Renew(Guard& guard, uint64_t list) {
  // The numbers of JSON are exact below 2^63 in all programs that an operator may look with.
  guard = Guard{.number = RandomNumber() >> 1, .trusted = false, .list = list, .left = {}};
}

bool Trusts(const Guard& guard, uint64_t incarnation) {
  if (!guard.trusted) return false;
  const auto left = guard.left.find(incarnation);
  return left == guard.left.end() || left->second.trusted;
}

std::string KeyPrefix(const Guard& guard) { return fmt::format("kv:{:x}:", guard.number); }

std::string KeyName(const Guard& guard, uint64_t incarnation, uint64_t id) {
  const auto left = guard.left.find(incarnation);
  const uint64_t epoch = left == guard.left.end() ? 0 : left->second.epoch;
  return fmt::format("{}{:x}:{:x}:{:x}", KeyPrefix(guard), incarnation, epoch, id);
}

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
