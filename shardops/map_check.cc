#include "shardops/map_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "backends/mysql/driver/statements.h"
#include "backends/mysql/driver/tables.h"
#include "shardmap/diff.h"
#include "shardmap/nodes.h"
#include "shardmap/remembered_hosts.h"
#include "shardops/move_record.h"
#include "shardops/notes.h"

namespace kvstore::shardops {
namespace {

/// The answer of a host: an error, or its state and databases.
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

/// Tells whether hosts that are known have stored anything in shards. Asks each host once, when that matters.
class Stored {
 public:
  /// hosts  all that may have something; none: that is not known.
  Stored(FleetOperator& fleet, std::vector<Host> hosts) : fleet_(fleet), hosts_(std::move(hosts)) {}

  /// Whether it is certain that no dataset has a table in these shards, on any host.
  bool IsNothing(const MoveRange& range) {
    if (hosts_.empty()) return false;
    if (tables_.empty()) {
      for (const Host& host : hosts_) tables_.push_back(Read(host));
    }
    return std::all_of(tables_.begin(), tables_.end(),
                       [&](const auto& tables) { return tables.ok() && IsNothing(range, *tables); });
  }

 private:
  static bool IsNothing(const MoveRange& range, const HostTables& tables) {
    for (const std::string& database : range.Databases()) {
      for (const std::string& name : {database, mysql::MovedName(database)}) {
        const auto found = tables.find(name);
        if (found == tables.end()) continue;
        const bool used = std::any_of(found->second.begin(), found->second.end(),
                                      [](const std::string& table) { return table != mysql::kClockTable; });
        if (used) return false;
      }
    }
    return true;
  }
  absl::StatusOr<HostTables> Read(const Host& host) {
    const auto admin = HostAdmin::Open(host, fleet_.access);
    if (!admin.ok()) return admin.status();
    return (*admin)->ReadTables();
  }

  FleetOperator& fleet_;
  const std::vector<Host> hosts_;
  std::vector<absl::StatusOr<HostTables>> tables_;
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
void CheckHost(Hosts& hosts, Stored& stored, const MoveRange& range, const Host& host, bool master,
               std::vector<std::string>& problems) {
  const HostAnswer& asked = hosts.Ask(host);
  if (!asked.status.ok()) {
    problems.push_back(
        fmt::format("{}: cannot be used: {}", host.ToString(), std::string(asked.status.message())));
    return;
  }
  if (const auto lacks = Select(range, asked, /*has=*/false); !lacks.empty() && !stored.IsNothing(range)) {
    const bool old = asked.databases.contains(mysql::MovedName(lacks.front()));
    problems.push_back(fmt::format("{}: has no {}{}, and would be the {} of shards {}", host.ToString(),
                                   Shorten(lacks), old ? ", only old tables from before they moved" : "",
                                   master ? "master" : "slave", range.ToString()));
  }
  if (master && asked.state.read_only) {
    problems.push_back(fmt::format("{}: is read-only, and would be the master of shards {}", host.ToString(),
                                   range.ToString()));
  }
}

/// Returns a sentence with the commands that change the hosts together with the map, so that nothing is lost.
/// A map alone, whatever puts it in force, would have clients read and write where the last writes are not.
std::string Proposal(ShardSpace space, const ShardChange& change) {
  const ShardRange& before = *change.before;
  const ShardRange& after = *change.after;
  const std::string arguments =
      fmt::format("{}--range {}-{}", space == ShardSpace::kMod ? "--mod " : "", change.first, change.last);
  const MoveRange range{.space = space, .first = change.first, .last = change.last};
  if (after.master == before.slave && after.slave == before.master) {
    return fmt::format("kv shards promote {0} makes {0} the master, with all that was written to {1}",
                       after.master.ToString(), before.master.ToString());
  }
  if (after.master == before.master) {
    return fmt::format(
        "kv shards replace-slave {} --by {} makes that the slave, with a copy of all that {} has",
        before.slave.ToString(), after.slave.ToString(), after.master.ToString());
  }
  const auto is_new = [&](const Host& host) { return host != before.master && host != before.slave; };
  if (is_new(after.master) && is_new(after.slave)) {
    return fmt::format("kv shards move {} --to {},{} moves shards {} there, with all that was written to {}",
                       arguments, after.master.ToString(), after.slave.ToString(), range.ToString(),
                       before.master.ToString());
  }
  return fmt::format(
      "change one host of {1} and {2}, which have shards {0}, at a time: kv shards replace-slave puts "
      "another slave there, and kv shards promote makes it the master",
      range.ToString(), before.master.ToString(), before.slave.ToString());
}

/// Checks the hosts of shards that are open in both maps, and on other hosts in the second one.
void CheckChange(Hosts& hosts, Stored& stored, ShardSpace space, const ShardChange& change,
                 std::vector<std::string>& problems) {
  if (!change.before || !change.after) return;
  const size_t found_before = problems.size();
  const MoveRange range{.space = space, .first = change.first, .last = change.last};
  const ShardRange& before = *change.before;
  const ShardRange& after = *change.after;
  if (after.master != before.master) {
    CheckHost(hosts, stored, range, after.master, /*master=*/true, problems);
    const HostAnswer& old = hosts.Ask(before.master);
    if (old.status.ok() && !old.state.read_only && !Select(range, old, /*has=*/true).empty() &&
        !stored.IsNothing(range)) {
      problems.push_back(fmt::format(
          "{}: has shards {} and takes writes: who has not seen the new map would go on to write there",
          before.master.ToString(), range.ToString()));
    }
  }
  if (after.slave != before.slave) CheckHost(hosts, stored, range, after.slave, /*master=*/false, problems);
  if (problems.size() > found_before) problems.push_back(Proposal(space, change));
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
  const StoredMap* const current = now.Find(ShardSpace::kId);
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
    const MoveRange range{.space = ShardSpace::kId, .first = change.first, .last = change.last};
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

std::vector<std::string> FindMapProblems(FleetOperator& fleet, const Maps& now, ShardSpace space,
                                         const ShardMap& next, AskHosts ask) {
  std::vector<std::string> problems;
  for (const auto& [host, text] : now.With(space, next).Disagreements()) {
    problems.push_back(fmt::format("{}: with this map, {}; a host is in one pair, the same in both maps",
                                   host.ToString(), text));
  }
  if (ask == AskHosts::kNone) return problems;
  Hosts hosts(fleet);
  if (ask == AskHosts::kAll) {
    // The map that cannot be read may have had hosts that nobody else knows.
    Stored unknown(fleet, {});
    for (const ShardRange& range : next.ranges()) {
      const MoveRange shards{.space = space, .first = range.first, .last = range.last};
      CheckHost(hosts, unknown, shards, range.master, /*master=*/true, problems);
      CheckHost(hosts, unknown, shards, range.slave, /*master=*/false, problems);
    }
    return problems;
  }
  if (const StoredMap* const current = now.Find(space); current != nullptr) {
    Stored stored(fleet, KnownHosts(fleet, now));
    for (const ShardChange& change : Diff(current->map, next))
      CheckChange(hosts, stored, space, change, problems);
  }
  if (space == ShardSpace::kId) {
    for (std::string& problem : FindElsewhere(fleet, hosts, now, next))
      problems.push_back(std::move(problem));
  }
  return problems;
}

}  // namespace kvstore::shardops
