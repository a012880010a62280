#include "catalog/shared_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "catalog/catalog_json.h"
#include "json/bytes_json.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore {
namespace {

constexpr uint64_t kSharedFormat = 1;
constexpr std::string_view kEntries = "datasets/";
/// Below these there is a node for each dataset.
constexpr std::array<std::string_view, 3> kOfDatasets = {kEntries, "dropped/", "migrations/"};
constexpr std::array<std::string_view, 3> kOfShards = {"shards/id", "shards/mod", "shards/weights"};

absl::Status DamagedNodes(std::string_view problem) {
  return absl::DataLossError(fmt::format("{}: {}", kSharedNodesFile, problem));
}

}  // namespace

bool IsSharedNode(std::string_view path) {
  if (std::find(kOfShards.begin(), kOfShards.end(), path) != kOfShards.end()) return true;
  return std::any_of(kOfDatasets.begin(), kOfDatasets.end(), [path](std::string_view folder) {
    return path.starts_with(folder) &&
           Validate(DatasetSpec{.name = std::string(path.substr(folder.size()))}).ok();
  });
}

std::string EncodeSharedNodes(const SharedNodes& nodes) {
  Json json = Json::object();
  for (const auto& [path, data] : nodes) json[path] = BytesToJson(data);
  return TextOf(Json{{"format", kSharedFormat}, {"nodes", std::move(json)}}, 1) + "\n";
}

absl::StatusOr<SharedNodes> DecodeSharedNodes(std::string_view text) {
  const auto json = ParseJson(text);
  if (!json.ok()) return DamagedNodes(std::string(json.status().message()));
  JsonFields fields(*json, "");
  if (fields.Uint("format", 1, UINT32_MAX) > kSharedFormat) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a newer version of KVStore wrote it; use that version", kSharedNodesFile));
  }
  static const Json kNone = Json::object();
  const Json* const found = fields.Require("nodes");
  const Json& all = found != nullptr && found->is_object() ? *found : kNone;
  JsonFields contents(found == nullptr ? kNone : *found, "nodes.");
  SharedNodes nodes;
  for (const auto& [path, unused] : all.items()) {
    // Only nodes that a backup has may be restored into ZooKeeper.
    if (!IsSharedNode(path)) contents.Fail(path, "is not the path of a node that a backup has");
    nodes[path] = contents.Bytes(path);
  }
  fields.Fail(contents.Finish());
  if (auto status = fields.Finish(); !status.ok()) return DamagedNodes(std::string(status.message()));
  return nodes;
}

std::vector<CatalogEntry> ActiveEntries(const SharedNodes& nodes, std::vector<std::string>* unreadable) {
  std::vector<CatalogEntry> entries;
  for (auto node = nodes.lower_bound(std::string(kEntries));
       node != nodes.end() && node->first.starts_with(kEntries); ++node) {
    auto entry = DecodeCatalogEntry(node->second);
    if (!entry.ok()) {
      if (unreadable != nullptr) {
        unreadable->push_back(fmt::format("{}: {}", node->first, std::string(entry.status().message())));
      }
    } else if (entry->state == DatasetState::kActive) {
      entries.push_back(*std::move(entry));
    }
  }
  return entries;
}

}  // namespace kvstore
