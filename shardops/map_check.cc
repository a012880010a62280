#include "shardops/map_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "shardmap/diff.h"
#include "shardmap/nodes.h"
#include "shardmap/remembered_hosts.h"
#include "shardops/move_record.h"
#include "shardops/notes.h"

namespace kvstore::shardops {
namespace {

/// What a host answered: an error, or its state and databases.
struct HostAnswer {
  absl::Status status;
  HostState state;
  std::set<std::string> databases;
};

/// Asks each host once, and remembers its answer.
class Hosts {
 public:
  explicit Hosts(FleetOperator& fleet) : fleet_(fleet) {}
  const HostAnswer& Ask(const Host& host) {
    const auto [found, is_new] = asked_.try_emplace(host);
    if (is_new) found->second = Inspect(host);
    return found->second;
  }

 private:
  HostAnswer Inspect(const Host& host) {
    const auto admin = HostAdmin::Open(host, fleet_.access);
    if (!admin.ok()) return {.status = admin.status()};
    auto state = (*admin)->Read();
    if (!state.ok()) return {.status = state.status()};
    const auto names = (*admin)->ReadDatabases();
    if (!names.ok()) return {.status = names.status()};
    if (auto status = CheckCopyEnded(fleet_, host); !status.ok()) return {.status = status};
    return {.state = *std::move(state), .databases = {names->begin(), names->end()}};
  }

  FleetOperator& fleet_;
  std::map<Host, HostAnswer> asked_;
};

/// Returns those databases of a range that a host has, or, if `has` is false, that it lacks.
std::vector<std::string> Select(const MoveRange& range, const HostAnswer& host, bool has) {
  std::vector<std::string> names = range.Databases();
  std::erase_if(names, [&](const std::string& name) { return host.databases.contains(name) != has; });
  return names;
}

/// "db00001", "db00001 and 3 more".
std::string Shorten(const std::vector<std::string>& names) {
  return names.size() == 1 ? names.front() : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

/// Checks a host that a map makes the master or the slave of shards that are open already.
void CheckHost(Hosts& hosts, const MoveRange& range, const Host& host, bool master,
               std::vector<std::string>& problems) {
  const HostAnswer& asked = hosts.Ask(host);
  if (!asked.status.ok()) {
    problems.push_back(
        fmt::format("{}: cannot be used: {}", host.ToString(), std::string(asked.status.message())));
    return;
  }
  if (const auto lacks = Select(range, asked, /*has=*/false); !lacks.empty()) {
    problems.push_back(fmt::format("{}: has no {}, and would be the {} of shards {}", host.ToString(),
                                   Shorten(lacks), master ? "master" : "slave", range.ToString()));
  }
  if (master && asked.state.read_only) {
    problems.push_back(
        fmt::format("{0}: is read-only, and would be the master of shards {1}: kv shards promote "
                    "{0} makes a slave the master, kv shards move gives shards to another pair",
                    host.ToString(), range.ToString()));
  }
}

void CheckChange(Hosts& hosts, bool mod, const ShardChange& change, std::vector<std::string>& problems) {
  if (!change.before || !change.after) return;
  const MoveRange range{.mod = mod, .first = change.first, .last = change.last};
  const ShardRange& before = *change.before;
  const ShardRange& after = *change.after;
  if (after.master != before.master) {
    CheckHost(hosts, range, after.master, /*master=*/true, problems);
    const HostAnswer& old = hosts.Ask(before.master);
    if (old.status.ok() && !old.state.read_only && !Select(range, old, /*has=*/true).empty()) {
      problems.push_back(fmt::format(
          "{}: has shards {} and takes writes: who has not seen the new map would go on to write there",
          before.master.ToString(), range.ToString()));
    }
  }
  if (after.slave != before.slave) CheckHost(hosts, range, after.slave, /*master=*/false, problems);
}

}  // namespace

std::vector<Host> KnownHosts(FleetOperator& fleet, const Maps& maps) {
  const std::vector<Host> remembered = RememberedHosts(fleet.zookeeper, fleet.root);
  std::set<Host> known(remembered.begin(), remembered.end());
  for (const Pair& pair : maps.Pairs()) known.insert({pair.master, pair.slave});
  return {known.begin(), known.end()};
}

namespace {

std::vector<std::string> FindElsewhere(FleetOperator& fleet, Hosts& hosts, const Maps& now,
                                       const ShardMap& next) {
  const StoredMap* const current = now.Find(/*mod=*/false);
  std::vector<ShardChange> changes;
  if (current != nullptr) {
    changes = Diff(current->map, next);
  } else {
    for (const ShardRange& range : next.ranges()) {
      changes.push_back({.first = range.first, .last = range.last, .before = std::nullopt, .after = range});
    }
  }
  std::vector<std::string> problems;
  const std::vector<Host> known = KnownHosts(fleet, now);
  for (const ShardChange& change : changes) {
    if (change.before || !change.after) continue;
    const MoveRange range{.mod = false, .first = change.first, .last = change.last};
    for (const Host& host : known) {
      if (host == change.after->master || host == change.after->slave) continue;
      const HostAnswer& asked = hosts.Ask(host);
      if (!asked.status.ok()) continue;
      if (const auto has = Select(range, asked, /*has=*/true); !has.empty()) {
        problems.push_back(
            fmt::format("{}: has {} already: new, empty shards of that name at {} would give objects IDs "
                        "that others have",
                        host.ToString(), Shorten(has), change.after->master.ToString()));
      }
    }
  }
  return problems;
}

}  // namespace

std::vector<std::string> FindElsewhere(FleetOperator& fleet, const Maps& now, const ShardMap& next) {
  Hosts hosts(fleet);
  return FindElsewhere(fleet, hosts, now, next);
}

std::vector<std::string> FindMapProblems(FleetOperator& fleet, const Maps& now, bool mod,
                                         const ShardMap& next, bool ask_hosts) {
  std::vector<std::string> problems;
  for (const auto& [host, text] : now.With(mod, next).Disagreements()) {
    problems.push_back(fmt::format("{}: {}", host.ToString(), text));
  }
  if (!ask_hosts) return problems;
  Hosts hosts(fleet);
  if (const StoredMap* const current = now.Find(mod); current != nullptr) {
    for (const ShardChange& change : Diff(current->map, next)) CheckChange(hosts, mod, change, problems);
  }
  if (!mod) {
    for (std::string& problem : FindElsewhere(fleet, hosts, now, next))
      problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace kvstore::shardops
