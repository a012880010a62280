#include "operate/checks.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "idgen/object_id.h"
#include "operate/leader.h"
#include "shardmap/nodes.h"
#include "shardops/maps.h"

namespace kvstore::operate {
namespace {

using shardops::FleetSession;
using shardops::HostAdmin;
using Findings = absl::StatusOr<std::vector<Finding>>;

/// The share of what there is, in percent, from which on a person is told.
constexpr uint64_t kNearlyFull = 80;

constexpr std::chrono::minutes kMapEvery{1};
constexpr std::chrono::minutes kDiskEvery{1};
/// Reading the tables of a host costs it some work where there are many.
constexpr std::chrono::hours kIdsEvery{1};

Findings CheckMaps(FleetSession& session) {
  const shardops::FleetOperator& fleet = *session;
  std::vector<Finding> findings;
  for (const bool mod : {false, true}) {
    const std::string path = MapPath(fleet.root, mod);
    const auto node = fleet.zookeeper.Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;
    if (!node.ok()) return node.status();
    const uint64_t percent = node->data.size() * 100 / ShardMap::kMaxTextBytes;
    if (percent < kNearlyFull) continue;
    findings.push_back({path,
                        fmt::format("the map has {} bytes, {} % of what it can have: join ranges of the same "
                                    "pair, by moves of shards back to where their neighbours are",
                                    node->data.size(), percent),
                        page::kMap});
  }
  return findings;
}

/// Asks each master, or each host, one after the other, and adds what `ask` finds. Hosts that do not answer
/// are left out: others tell of them.
Findings AskHosts(FleetSession& session, bool masters_only, const std::atomic<bool>& active,
                  const std::function<void(HostAdmin&, std::vector<Finding>&)>& ask) {
  shardops::FleetOperator& fleet = *session;
  const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  std::set<Host> hosts;
  for (const shardops::Pair& pair : maps->Pairs()) {
    hosts.insert(pair.master);
    if (!masters_only) hosts.insert(pair.slave);
  }
  std::vector<Finding> findings;
  for (const Host& host : hosts) {
    if (!active) break;
    if (auto admin = HostAdmin::Open(host, fleet.access); admin.ok()) ask(**admin, findings);
  }
  return findings;
}

void FindFullTables(HostAdmin& admin, std::vector<Finding>& findings) {
  constexpr uint64_t kMost = ObjectId::kMaxLocal;
  admin
      .WithConnection([&](mysql::Connection& connection) {
        mysql::Rows rows = connection.Ask(fmt::format(
            "SELECT table_schema, table_name, auto_increment FROM information_schema.tables WHERE "
            "table_schema REGEXP '^db[0-9]{{5}}$' AND auto_increment > {}",
            kMost / 100 * kNearlyFull));
        while (rows.Next()) {
          findings.push_back(
              {fmt::format("{}.{}", rows.Bytes(1), rows.Bytes(2)),
               fmt::format("{} % of the local IDs of this table on {} are given: give its shard "
                           "the weight 0 (kv shards weight), so that new objects go elsewhere",
                           rows.Uint(3) * 100 / kMost, admin.host().ToString()),
               page::kIds});
        }
        return absl::OkStatus();
      })
      .IgnoreError();
}

void FindFullDisks(HostAdmin& admin, std::vector<Finding>& findings) {
  // A host without the plugin has no such table.
  admin
      .WithConnection([&](mysql::Connection& connection) {
        mysql::Rows rows = connection.Ask(
            "SELECT d.path, d.used, d.used + d.available FROM information_schema.disks d WHERE "
            "@@datadir LIKE CONCAT(d.path, '%') AND d.used + d.available > 0 ORDER BY LENGTH(d.path) DESC "
            "LIMIT 1");
        if (!rows.Next()) return absl::OkStatus();
        const uint64_t percent = rows.Uint(2) * 100 / rows.Uint(3);
        if (percent < kNearlyFull) return absl::OkStatus();
        findings.push_back(
            {admin.host().ToString(),
             fmt::format("the disk at {} is full to {} %: move shards away (kv shards move), or "
                         "drop datasets",
                         rows.Bytes(1), percent),
             page::kDisk});
        return absl::OkStatus();
      })
      .IgnoreError();
}

}  // namespace

std::vector<Check> FleetChecks(const shardops::FleetOptions& fleet) {
  // Each has a session of its own, since each runs on a thread of its own.
  const auto open = [&] { return std::make_shared<FleetSession>(fleet, /*who=*/"", /*report=*/nullptr); };
  return {
      {.source = "map",
       .every = kMapEvery,
       .find = [session = open()](const std::atomic<bool>&) { return CheckMaps(*session); }},
      {.source = "ids",
       .every = kIdsEvery,
       .find =
           [session = open()](const std::atomic<bool>& active) {
             return AskHosts(*session, /*masters_only=*/true, active, &FindFullTables);
           }},
      {.source = "disk", .every = kDiskEvery, .find = [session = open()](const std::atomic<bool>& active) {
         return AskHosts(*session, /*masters_only=*/false, active, &FindFullDisks);
       }}};
}

}  // namespace kvstore::operate
