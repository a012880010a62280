#include "shardops/notes.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace kvstore::shardops {
namespace {

using Json = nlohmann::json;

/// In the note of a host: the master that a copy is made from, until that is whole.
constexpr char kCopyOf[] = "copy_of";

std::string Node(const Fleet& fleet, const Host& host) {
  return fmt::format("{}/hosts/{}", fleet.root, host.ToString());
}

/// What is kept, and its version; none: nothing is.
struct Kept {
  Json note = Json::object();
  std::optional<int32_t> version;
};

absl::StatusOr<Kept> Read(Fleet& fleet, const Host& host) {
  const auto node = fleet.zookeeper.Get(Node(fleet, host), /*watch=*/false);
  if (absl::IsNotFound(node.status())) return Kept{};
  if (!node.ok()) return node.status();
  Kept kept{.version = node->version};
  Json note = Json::parse(node->data, nullptr, /*allow_exceptions=*/false);
  if (note.is_object()) kept.note = std::move(note);
  return kept;
}

absl::Status Write(Fleet& fleet, const Host& host, const Kept& kept) {
  const std::string path = Node(fleet, host);
  if (!kept.version) return fleet.zookeeper.Create(path, kept.note.dump());
  return fleet.zookeeper.Set(path, kept.note.dump(), *kept.version);
}

}  // namespace

absl::Status WriteNote(Fleet& fleet, const Host& host, const Json& note) {
  auto kept = Read(fleet, host);
  if (!kept.ok()) return kept.status();
  const Json copy_of = kept->note.value(kCopyOf, Json());
  kept->note = note;
  if (!copy_of.is_null()) kept->note[kCopyOf] = copy_of;
  return Write(fleet, host, *kept);
}

Json ReadNote(Fleet& fleet, const Host& host) {
  auto kept = Read(fleet, host);
  return kept.ok() ? std::move(kept->note) : Json::object();
}

absl::Status BeginCopy(Fleet& fleet, const Host& host, const Host& master) {
  auto kept = Read(fleet, host);
  if (!kept.ok()) return kept.status();
  kept->note[kCopyOf] = master.ToString();
  return Write(fleet, host, *kept);
}

absl::Status EndCopy(Fleet& fleet, const Host& host) {
  auto kept = Read(fleet, host);
  if (!kept.ok()) return kept.status();
  kept->note.erase(kCopyOf);
  return Write(fleet, host, *kept);
}

absl::Status CheckCopyEnded(Fleet& fleet, const Host& host) {
  const auto kept = Read(fleet, host);
  if (!kept.ok()) return kept.status();
  if (!kept->note.contains(kCopyOf)) return absl::OkStatus();
  return Refuse(
      fmt::format("{0}: a copy to it from {1} was begun and has not ended, so it lacks data: unless "
                  "that is still at work (kv shards operations), kv shards replace-slave {0} "
                  "--discard begins it again",
                  host.ToString(), kept->note.value(kCopyOf, "its master")));
}

}  // namespace kvstore::shardops
