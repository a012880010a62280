#include "operate/checks.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "idgen/object_id.h"
#include "operate/leader.h"
#include "operate/switch.h"
#include "shardmap/nodes.h"
#include "shardops/maps.h"

namespace kvstore::operate {
namespace {

using shardops::FleetSession;
using shardops::HostAdmin;
using Findings = absl::StatusOr<std::vector<Finding>>;

/// How full something is, in percent, when a person is told.
constexpr uint64_t kNearlyFull = 80;

constexpr std::chrono::minutes kMapEvery{1};
constexpr std::chrono::minutes kDiskEvery{1};
constexpr std::chrono::minutes kStartsEvery{1};
/// Reading the tables of a host costs it some work where there are many.
constexpr std::chrono::hours kIdsEvery{1};

Findings CheckMaps(FleetSession& session) {
  const shardops::FleetOperator& fleet = *session;
  std::vector<Finding> findings;
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    const std::string path = MapPath(fleet.root, space);
    const auto node = fleet.zookeeper.Get(path, /*watch=*/false);
    if (absl::IsNotFound(node.status())) continue;
    if (!node.ok()) return node.status();
    const uint64_t percent = node->data.size() * 100 / ZooKeeper::kMaxNodeBytes;
    if (percent < kNearlyFull) continue;
    findings.push_back({path,
                        fmt::format("the map has {} bytes, {} % of what it can have: join ranges of the same "
                                    "pair, by moves of shards back to where their neighbours are",
                                    node->data.size(), percent),
                        page::kMap});
  }
  return findings;
}

/// The findings on each host when it answered last.
using LastFound = std::map<Host, std::vector<Finding>>;

/// Asks each master, or each host, one after the other, what `ask` finds. The findings on a host that does
/// not answer now are returned again, since it may still be so.
Findings AskHosts(FleetSession& session, bool masters_only, const std::atomic<bool>& active, LastFound& last,
                  const std::function<absl::Status(HostAdmin&, std::vector<Finding>&)>& ask) {
  shardops::FleetOperator& fleet = *session;
  const auto maps = shardops::Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  std::set<Host> hosts;
  for (const shardops::Pair& pair : maps->Pairs()) {
    hosts.insert(pair.master);
    if (!masters_only) hosts.insert(pair.slave);
  }
  std::erase_if(last, [&](const auto& one) { return !hosts.contains(one.first); });
  std::vector<Finding> all;
  for (const Host& host : hosts) {
    if (active) {
      std::vector<Finding> findings;
      const auto admin = HostAdmin::Open(host, fleet.access);
      if (admin.ok() && ask(**admin, findings).ok()) last[host] = std::move(findings);
    }
    const std::vector<Finding>& found = last[host];
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

absl::Status FindFullTables(HostAdmin& admin, std::vector<Finding>& findings) {
  constexpr uint64_t kMost = ObjectId::kMaxLocal;
  return admin.WithConnection([&](mysql::Connection& connection) {
    mysql::Rows rows = connection.Ask(
        fmt::format("SELECT table_schema, table_name, auto_increment FROM information_schema.tables WHERE "
                    "table_schema REGEXP '^db[0-9]{{5}}$' AND auto_increment > {}",
                    kMost / 100 * kNearlyFull));
    while (rows.Next()) {
      findings.push_back({fmt::format("{}.{}", rows.Bytes(1), rows.Bytes(2)),
                          fmt::format("{} % of the local IDs of this table on {} are given: give its shard "
                                      "the weight 0 (kv shards weight), so that new objects go elsewhere",
                                      rows.Uint(3) * 100 / kMost, admin.host().ToString()),
                          page::kIds});
    }
    return absl::OkStatus();
  });
}

absl::Status FindFullDisks(HostAdmin& admin, std::vector<Finding>& findings) {
  // A host without the plugin has no such table.
  return admin.WithConnection([&](mysql::Connection& connection) {
    mysql::Rows rows = connection.Ask(
        "SELECT d.path, d.used, d.used + d.available FROM information_schema.disks d WHERE "
        "@@datadir LIKE CONCAT(d.path, '%') AND d.used + d.available > 0 ORDER BY LENGTH(d.path) DESC "
        "LIMIT 1");
    if (!rows.Next()) return absl::OkStatus();
    const uint64_t percent = rows.Uint(2) * 100 / rows.Uint(3);
    if (percent < kNearlyFull) return absl::OkStatus();
    findings.push_back({admin.host().ToString(),
                        fmt::format("the disk at {} is full to {} %: move shards away (kv shards move), or "
                                    "drop datasets",
                                    rows.Bytes(1), percent),
                        page::kDisk});
    return absl::OkStatus();
  });
}

/// A host that would take writes when it is started again could acknowledge writes beside its successor.
absl::Status FindWritableStart(HostAdmin& admin, std::vector<Finding>& findings) {
  const auto writable = StartsWritable(admin);
  if (writable.ok() && *writable) {
    findings.push_back({admin.host().ToString(), WritableStart(admin.engine()), page::kHost});
  }
  return writable.status();
}

}  // namespace

std::vector<Check> FleetChecks(const shardops::FleetOptions& fleet) {
  // Each has a session of its own, since each runs on a thread of its own.
  struct State {
    explicit State(const shardops::FleetOptions& options)
        : session(options, /*who=*/"", /*report=*/nullptr) {}
    FleetSession session;
    LastFound last;
  };
  const auto hosts = [&](const char* source, std::chrono::milliseconds every, bool masters_only, auto ask) {
    return Check{
        .source = source,
        .every = every,
        .find = [state = std::make_shared<State>(fleet), masters_only, ask](const std::atomic<bool>& active) {
          return AskHosts(state->session, masters_only, active, state->last, ask);
        }};
  };
  return {{.source = "map",
           .every = kMapEvery,
           .find = [state = std::make_shared<State>(fleet)](
                       const std::atomic<bool>&) { return CheckMaps(state->session); }},
          hosts("ids", kIdsEvery, /*masters_only=*/true, &FindFullTables),
          hosts("disk", kDiskEvery, /*masters_only=*/false, &FindFullDisks),
          hosts("starts", kStartsEvery, /*masters_only=*/false, &FindWritableStart)};
}

}  // namespace kvstore::operate
