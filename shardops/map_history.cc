#include "shardops/map_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/process.h"
#include "shardmap/nodes.h"

namespace kvstore::shardops {
namespace {

using Json = nlohmann::json;

/// ZooKeeper cuts the connection at about 1 MiB for a transaction too, which has the map twice.
constexpr size_t kMaxKeptBytes = ZooKeeper::kMaxNodeBytes / 3;

std::string Folder(const std::string& root, bool mod) {
  return root + (mod ? "/history/mod" : "/history/id");
}

/// The names of what is kept, the oldest first.
absl::StatusOr<std::vector<std::string>> Names(ZooKeeper& zookeeper, const std::string& folder) {
  auto names = zookeeper.Children(folder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (names.ok()) std::sort(names->begin(), names->end());
  return names;
}

std::optional<KeptMap> Parse(const std::string& name, const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  auto map = ShardMap::Parse(json.value("map", ""));
  if (!map.ok()) return std::nullopt;
  return KeptMap{name, json.value("at_ms", uint64_t{0}), json.value("who", ""), *std::move(map)};
}

absl::StatusOr<KeptMap> Read(ZooKeeper& zookeeper, const std::string& folder, const std::string& name) {
  const auto node = zookeeper.Get(fmt::format("{}/{}", folder, name), /*watch=*/false);
  if (!node.ok()) return node.status();
  auto kept = Parse(name, node->data);
  if (!kept) return absl::DataLossError(fmt::format("{}/{}: is no map that was kept", folder, name));
  return *std::move(kept);
}

/// Keeps a map; none if it is too long to be in a transaction twice.
std::optional<ZooKeeperStep> KeepStep(const std::string& root, bool mod, const std::string& text) {
  if (text.size() > kMaxKeptBytes) return std::nullopt;
  const uint64_t now_ms = WallClockMs();
  const Json json = {{"at_ms", now_ms}, {"who", ProcessName()}, {"map", text}};
  // Two at the same moment have different names.
  return ZooKeeperStep{
      .kind = ZooKeeperStep::Kind::kCreate,
      .path = fmt::format("{}/{:013}-{:08x}", Folder(root, mod), now_ms, std::random_device{}()),
      .data = json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

}  // namespace

absl::Status PrepareHistory(ZooKeeper& zookeeper, const std::string& root) {
  for (const bool mod : {false, true}) {
    const auto current = zookeeper.Get(MapPath(root, mod), /*watch=*/false);
    if (absl::IsNotFound(current.status())) continue;
    if (!current.ok()) return current.status();
    const std::string folder = Folder(root, mod);
    const auto names = Names(zookeeper, folder);
    if (!names.ok()) return names.status();
    const auto map = ShardMap::Parse(current->data);
    const auto last = names->empty() ? absl::NotFoundError("none") : Read(zookeeper, folder, names->back());
    if (map.ok() && (!last.ok() || last->map != *map)) {
      if (const auto step = KeepStep(root, mod, current->data)) {
        if (auto status = zookeeper.Create(step->path, step->data); !status.ok()) return status;
      }
    }
    for (size_t i = 0; i + kKeptMaps < names->size(); ++i) {
      const absl::Status status = zookeeper.Delete(fmt::format("{}/{}", folder, (*names)[i]));
      if (!status.ok() && !absl::IsNotFound(status)) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status PutInForce(ZooKeeperLedger& ledger, const Held& held, const std::string& root,
                        std::vector<ZooKeeperStep> steps) {
  std::vector<ZooKeeperStep> kept = steps;
  for (const ZooKeeperStep& step : steps) {
    if (step.kind != ZooKeeperStep::Kind::kSet) continue;
    if (auto keep = KeepStep(root, step.path == MapPath(root, /*mod=*/true), step.data)) {
      kept.push_back(*std::move(keep));
    }
  }
  absl::Status status = ledger.Change(held, std::move(kept));
  // There is no history, or it is another user's: that is no reason to leave a map wrong.
  if (absl::IsNotFound(status) || absl::IsPermissionDenied(status)) {
    status = ledger.Change(held, std::move(steps));
  }
  return status;
}

absl::StatusOr<std::vector<KeptMap>> ReadHistory(ZooKeeper& zookeeper, const std::string& root, bool mod) {
  const std::string folder = Folder(root, mod);
  const auto names = Names(zookeeper, folder);
  if (!names.ok()) return names.status();
  std::vector<KeptMap> history;
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    auto kept = Read(zookeeper, folder, *name);
    // It may be the oldest, which somebody has just removed.
    if (absl::IsNotFound(kept.status())) continue;
    if (!kept.ok()) return kept.status();
    history.push_back(*std::move(kept));
  }
  return history;
}

}  // namespace kvstore::shardops
