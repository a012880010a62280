#include "shardops/notes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace kvstore::shardops {
namespace {

std::string Node(const Fleet& fleet, const Host& host) {
  return fmt::format("{}/hosts/{}", fleet.root, host.ToString());
}

}  // namespace

absl::Status WriteNote(Fleet& fleet, const Host& host, const nlohmann::json& note) {
  const std::string path = Node(fleet, host);
  const auto node = fleet.zookeeper.Get(path, /*watch=*/false);
  if (absl::IsNotFound(node.status())) return fleet.zookeeper.Create(path, note.dump());
  if (!node.ok()) return node.status();
  return fleet.zookeeper.Set(path, note.dump(), node->version);
}

nlohmann::json ReadNote(Fleet& fleet, const Host& host) {
  const auto node = fleet.zookeeper.Get(Node(fleet, host), /*watch=*/false);
  auto note = node.ok() ? nlohmann::json::parse(node->data, nullptr, false) : nlohmann::json();
  return note.is_object() ? note : nlohmann::json::object();
}

}  // namespace kvstore::shardops
