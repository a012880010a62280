#include "catalog/ledger_json.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

namespace kvstore {
namespace {

constexpr std::array<std::string_view, 3> kModes = {"shared", "update", "exclusive"};

Json ToJson(const Claim& claim) {
  Json json = {{"mode", kModes.at(static_cast<size_t>(claim.mode))}};
  const std::string_view space = ShardSpaceName(claim.space);
  switch (claim.kind) {
    case Claim::Kind::kDataset:
      json["dataset"] = claim.name;
      break;
    case Claim::Kind::kHost:
      json["host"] = claim.name;
      break;
    case Claim::Kind::kShards:
      json["shards"] = space;
      break;
    case Claim::Kind::kHomes:
      json["homes"] = space;
      break;
  }
  if (claim.kind == Claim::Kind::kShards || claim.kind == Claim::Kind::kHomes) {
    json["range"] = {claim.first, claim.last};
  }
  return json;
}

/// Returns nothing for a kind or mode that this version does not know. Throws Json::exception if the form is
/// wrong.
std::optional<Claim> FromJson(const Json& json) {
  Claim claim;
  const auto mode = std::find(kModes.begin(), kModes.end(), json.at("mode").get<std::string>());
  if (mode == kModes.end()) return std::nullopt;
  claim.mode = static_cast<ClaimMode>(mode - kModes.begin());
  if (json.contains("dataset") || json.contains("host")) {
    const bool dataset = json.contains("dataset");
    claim.kind = dataset ? Claim::Kind::kDataset : Claim::Kind::kHost;
    claim.name = json.at(dataset ? "dataset" : "host").get<std::string>();
    return claim;
  }
  const bool homes = json.contains("homes");
  if (!homes && !json.contains("shards")) return std::nullopt;
  claim.kind = homes ? Claim::Kind::kHomes : Claim::Kind::kShards;
  claim.space = json.at(homes ? "homes" : "shards") == "mod" ? ShardSpace::kMod : ShardSpace::kId;
  claim.first = json.at("range").at(0);
  claim.last = json.at("range").at(1);
  return claim;
}

}  // namespace

Json OperationToJson(const Operation& operation) {
  Json claims = Json::array();
  for (const Claim& claim : operation.claims) claims.push_back(ToJson(claim));
  Json json = {{"what", operation.what},         {"who", operation.who},
               {"since_ms", operation.since_ms}, {"lasting", operation.lasting},
               {"process", operation.process},   {"claims", std::move(claims)}};
  if (operation.yields) json["yields"] = true;
  if (!operation.go_on.empty()) json["go_on"] = operation.go_on;
  return json;
}

absl::StatusOr<Operation> DecodeOperation(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return json.status();
  try {
    Operation operation{.what = json->at("what").get<std::string>(),
                        .who = json->value("who", std::string()),
                        .since_ms = json->value("since_ms", uint64_t{0}),
                        .lasting = json->value("lasting", false),
                        .yields = json->value("yields", false),
                        .go_on = json->value("go_on", std::string()),
                        .process = json->value("process", std::string())};
    for (const Json& one : json->at("claims")) {
      auto claim = FromJson(one);
      if (!claim) return absl::FailedPreconditionError("claims something that only a newer version knows");
      operation.claims.push_back(*std::move(claim));
    }
    return operation;
  } catch (const Json::exception& error) {
    return absl::DataLossError(error.what());
  }
}

}  // namespace kvstore
