#include "shardops/fleet_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/mysql/driver/schema.h"
#include "backends/mysql/driver/tables.h"
#include "shardops/channel.h"
#include "shardops/map_check.h"
#include "shardops/maps.h"
#include "shardops/notes.h"
#include "shardops/parallel.h"
#include "shardops/status.h"

namespace kvstore::shardops {
namespace {

/// Returns 17 for "db00017" of the ID shards; nullopt for databases of other names or of the other space.
std::optional<uint32_t> ShardOf(const std::string& database, ShardSpace space) {
  const std::string_view prefix = ShardSpaceName(space);
  if (database.size() != prefix.size() + 5 || !database.starts_with(prefix)) return std::nullopt;
  const std::string digits = database.substr(prefix.size());
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return static_cast<uint32_t>(std::stoul(digits));
}

using Shards = std::set<std::pair<ShardSpace, uint32_t>>;

/// The shards that a host has by the maps.
struct Home {
  Shards shards;
  Shards led;  ///< Those of them of which it is the master.
  /// The pair that it is in; none for a host that is in no map any more.
  std::optional<Pair> pair;
  /// The shards of which moves that were given up have left copies on it.
  std::vector<MoveRange> left;

  bool HasLeft(ShardSpace space, uint32_t shard) const {
    return std::any_of(left.begin(), left.end(),
                       [&](const MoveRange& range) { return range.space == space && range.Contains(shard); });
  }
  bool IsOfPair(const Host& host) const { return pair && (host == pair->master || host == pair->slave); }
};

/// The shards that each host should have by the maps, and all shards that are open.
struct Expected {
  std::map<Host, Home> homes;
  Shards open;
};

Expected ExpectedOf(FleetOperator& fleet, const Maps& maps) {
  Expected expected;
  for (const StoredMap& stored : maps.all()) {
    for (const ShardRange& range : stored.map.ranges()) {
      for (uint32_t shard = range.first; shard <= range.last; ++shard) {
        expected.open.insert({stored.space, shard});
        expected.homes[range.master].led.insert({stored.space, shard});
        expected.homes[range.master].shards.insert({stored.space, shard});
        expected.homes[range.slave].shards.insert({stored.space, shard});
      }
    }
  }
  for (const Pair& pair : maps.Pairs()) {
    expected.homes[pair.master].pair = pair;
    expected.homes[pair.slave].pair = pair;
  }
  // A host that is in no map any more may still have shards that a wrong map took from it.
  for (const Host& host : KnownHosts(fleet, maps)) {
    expected.homes.try_emplace(host).first->second.left = LeftCopies(fleet, host);
  }
  return expected;
}

/// The hosts and shards that operations under way have for themselves alone, so that they are left out of the
/// comparison. An empty one leaves nothing out.
class LeftOut {
 public:
  LeftOut() = default;
  explicit LeftOut(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) {
      for (const Claim& claim : operation.claims) {
        if (claim.mode == ClaimMode::kExclusive) claims_.push_back(claim);
      }
    }
  }
  bool Has(const Host& host) const {
    return std::any_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
      return claim.kind == Claim::Kind::kHost && (claim.name.empty() || claim.name == host.ToString());
    });
  }
  bool Has(ShardSpace space, uint32_t shard) const {
    return std::any_of(claims_.begin(), claims_.end(), [&](const Claim& claim) {
      const bool shards = claim.kind == Claim::Kind::kShards || claim.kind == Claim::Kind::kHomes;
      return shards && claim.space == space && claim.first <= shard && shard <= claim.last;
    });
  }

 private:
  std::vector<Claim> claims_;
};

/// A dataset, and where it should have tables.
struct ExpectedDataset {
  DatasetSpec spec;
  /// The shards on which its table was made; nullopt: that is all.
  std::optional<std::set<uint32_t>> made;

  bool HasTable(ShardSpace space, uint32_t shard) const {
    return mysql::SpaceOf(spec.shape) == space && (!made || made->contains(shard));
  }
};

/// Compares the hosts, one after the other, with what they should have.
class Comparison {
 public:
  Comparison(const Expected& expected, const std::map<Host, HostTables>& all,
             std::span<const ExpectedDataset> datasets, const LeftOut& left_out, Findings& found)
      : expected_(expected), all_(all), datasets_(datasets), left_out_(left_out), found_(found) {}

  void Compare(const Host& host) {
    if (left_out_.Has(host)) return;
    const Home& home = expected_.homes.at(host);
    FindMissing(host, home);
    FindStrays(host, home);
  }

 private:
  /// Returns another host that has a database; none if there is none.
  ///
  /// of_other_pair  Whether hosts of the same pair are left out.
  std::optional<Host> OtherWith(const std::string& database, const Host& host, const Home& home,
                                bool of_other_pair) const {
    for (const auto& [other, tables] : all_) {
      if (other == host || (of_other_pair && home.IsOfPair(other))) continue;
      if (tables.contains(database)) return other;
    }
    return std::nullopt;
  }

  /// Finds each database and table that a host lacks.
  void FindMissing(const Host& host, const Home& home) {
    const HostTables& there = all_.at(host);
    for (const auto& [space, shard] : home.shards) {
      if (left_out_.Has(space, shard)) continue;
      const std::string database = mysql::DatabaseName(space, shard);
      const auto tables = there.find(database);
      if (tables == there.end()) {
        SayMissing(host, home, space, shard);
        continue;
      }
      const bool moves = there.contains(mysql::MovedName(database));
      for (const ExpectedDataset& dataset : datasets_) {
        const std::string& table = TableName(dataset.spec);
        if (!dataset.HasTable(space, shard) || tables->second.contains(table)) continue;
        const bool migrates =
            tables->second.contains(table + "$state") || tables->second.contains(table + "$r$state");
        const std::string why = migrates ? "the dataset migrates, see kv migrate status"
                                : moves  ? "the shard is being moved, see kv shards move status"
                                         : "kv shards init makes it";
        found_.Add(host, space, shard, fmt::format("table {}.{} is missing: {}", database, table, why),
                   fmt::format("table {} is missing in each: {}", table, why));
      }
    }
  }

  void SayMissing(const Host& host, const Home& home, ShardSpace space, uint32_t shard) {
    const std::string database = mysql::DatabaseName(space, shard);
    const auto say = [&](const std::string& one, const std::string& many) {
      found_.Add(host, space, shard, fmt::format("database {} is missing{}", database, one),
                 "their databases are missing" + many);
    };
    if (all_.at(host).contains(mysql::MovedName(database))) {
      say(fmt::format(", and its tables are put away there as {}: kv shards move status says whether the "
                      "shard is being moved, kv shards history what the map was",
                      mysql::MovedName(database)),
          ", and their tables are put away there under names that end with _moved: kv shards move status "
          "says whether the shards are being moved, kv shards history what the map was");
      return;
    }
    const auto other = OtherWith(database, host, home, /*of_other_pair=*/false);
    if (!other) {
      say(": kv shards init makes it", ": kv shards init makes them");
    } else if (home.led.contains({space, shard})) {
      say(fmt::format(", and {} has it: is the map right? kv shards history shows what it was",
                      other->ToString()),
          fmt::format(", and {} has them: is the map right? kv shards history shows what it was",
                      other->ToString()));
    } else {
      say(", which its master has: kv shards status says whether it follows",
          ", which its master has: kv shards status says whether it follows");
    }
  }

  /// Finds each database of a shard that a host should not have.
  void FindStrays(const Host& host, const Home& home) {
    std::vector<uint32_t> unopened;
    for (const auto& [database, unused] : all_.at(host)) {
      for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
        const auto shard = ShardOf(database, space);
        if (!shard || home.shards.contains({space, *shard}) || left_out_.Has(space, *shard)) continue;
        const auto other = OtherWith(database, host, home, /*of_other_pair=*/true);
        const bool nowhere = space == ShardSpace::kId && !expected_.open.contains({space, *shard});
        if (nowhere && !other && home.pair) {
          const auto master = all_.find(home.pair->master);
          if (master != all_.end() && master->second.contains(database)) {
            // The slave has it from its master.
            if (host == home.pair->master) unopened.push_back(*shard);
            continue;
          }
        }
        if (home.HasLeft(space, *shard) && !nowhere) {
          SayLeft(host, space, *shard);
        } else {
          SayStray(host, space, *shard, nowhere, other);
        }
      }
    }
    if (home.pair) ProposeOpening(*home.pair, unopened);
  }

  void SayLeft(const Host& host, ShardSpace space, uint32_t shard) {
    const std::string left =
        " a move that was given up while this host did not answer; docs/runbook.md, 'The new hosts of a move "
        "are gone for good', says how to remove what it left";
    found_.Add(host, space, shard,
               fmt::format("database {} is of a shard that the map has elsewhere, and a copy of{}",
                           mysql::DatabaseName(space, shard), left),
               "it has databases of them, and the map has them elsewhere; these are copies of" + left);
  }

  void SayStray(const Host& host, ShardSpace space, uint32_t shard, bool nowhere,
                const std::optional<Host>& other) {
    const char* const where = nowhere ? "nowhere" : "elsewhere";
    const std::string one = fmt::format("database {} is of a shard that the map has {}",
                                        mysql::DatabaseName(space, shard), where);
    const std::string many = fmt::format("it has databases of them, and the map has them {}", where);
    if (other) {
      found_.Add(
          host, space, shard,
          fmt::format(
              "{}; {} has it too: see which of them has the rows, and whether the map is right "
              "(kv shards history), before one is dropped; if kv shards move status shows that it moved "
              "from there, the finish of that move drops what is left",
              one, other->ToString()),
          fmt::format("{}; {} has such databases too: see which of them have the rows, and whether "
                      "the map is right (kv shards history), before one is dropped; if kv shards move status "
                      "shows that they moved from there, the finish of that move drops what is left",
                      many, other->ToString()));
    } else {
      found_.Add(host, space, shard,
                 one +
                     ", and no host of another pair has that database: is the map right? kv shards history "
                     "shows what it was before",
                 many +
                     ", and no host of another pair has such databases: is the map right? kv shards "
                     "history shows what it was before");
    }
  }

  /// Adds a sentence for the databases of ID shards that a master has and no map. Whoever opens shards makes
  /// their databases first, and may be gone before the map has them.
  void ProposeOpening(const Pair& pair, const std::vector<uint32_t>& shards) {
    for (size_t i = 0; i < shards.size();) {
      size_t end = i + 1;
      while (end < shards.size() && shards[end] == shards[end - 1] + 1) ++end;
      found_.Add(fmt::format(
          "{0}: has databases of shards {1}-{2}, which the map has nowhere. If an opening of them was cut "
          "short, kv shards open --range {1}-{2} --master {0} --slave {3} opens them with what is there; kv "
          "shards history shows whether a wrong map has lost them",
          pair.master.ToString(), shards[i], shards[end - 1], pair.slave.ToString()));
      i = end;
    }
  }

  const Expected& expected_;
  const std::map<Host, HostTables>& all_;
  const std::span<const ExpectedDataset> datasets_;
  const LeftOut& left_out_;
  Findings& found_;
};

/// The answers of all hosts, and those who gave none.
struct Answers {
  std::map<Host, HostTables> all;
  std::vector<Host> silent;
};

/// Asks all hosts at the same time. Returns the error of a host that was reached and could not be read.
absl::StatusOr<Answers> AskAll(FleetOperator& fleet, const Expected& expected,
                               const std::function<absl::StatusOr<HostTables>(HostAdmin&)>& read) {
  struct Answer {
    Host host;
    bool reached = false;
    absl::StatusOr<HostTables> tables = absl::UnknownError("not asked");
  };
  std::vector<Answer> answers;
  for (const auto& [host, unused] : expected.homes) answers.push_back({.host = host});
  InParallel(answers.size(), [&](size_t i) {
    const auto admin = HostAdmin::Open(answers[i].host, fleet.access);
    if (!admin.ok()) return;
    answers[i].reached = true;
    answers[i].tables = read(**admin);
  });
  Answers sorted;
  for (Answer& answer : answers) {
    if (!answer.reached) {
      sorted.silent.push_back(answer.host);
    } else if (!answer.tables.ok()) {
      return answer.tables.status();
    } else {
      sorted.all.emplace(answer.host, *std::move(answer.tables));
    }
  }
  return sorted;
}

/// Finds hosts that came back after a move to them was given up, and replicate from its source again.
void FindLeftChannels(FleetOperator& fleet, const Expected& expected, const Answers& answers,
                      Findings& found) {
  for (const auto& [host, unused] : answers.all) {
    if (expected.homes.at(host).left.empty()) continue;
    const auto admin = HostAdmin::Open(host, fleet.access);
    if (!admin.ok()) continue;
    const auto channel = Channel(**admin).Read();
    if (!channel.ok() || !*channel) continue;
    // A MySQL server that was started again cannot log in at the source, and so gets nothing more.
    const bool applies = (*channel)->applies && (*admin)->engine() == Engine::kMariaDb;
    if (!(*channel)->receives && !applies) continue;
    found.Add(fmt::format(
        "{0}: replicates from {1} for a move that was given up, and may acknowledge commits in the place of "
        "that one's slave: {2} there at once; docs/runbook.md, 'The new hosts of a move are gone "
        "for good', says how to go on",
        host.ToString(), (*channel)->source.ToString(), (*admin)->words().stop_channels));
  }
}

}  // namespace

absl::StatusOr<FleetCheck> CheckFleet(FleetOperator& fleet, std::span<const DatasetSpec> datasets) {
  const auto reports = InspectFleet(fleet);
  if (!reports.ok()) return reports.status();
  Findings found;
  for (const HostReport& report : *reports) {
    for (const std::string& problem : report.problems) found.Add(report.host.ToString() + ": " + problem);
  }
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const Expected expected = ExpectedOf(fleet, *maps);
  // Before the hosts are asked: a table that is made meanwhile is not missed.
  std::vector<ExpectedDataset> with_tables;
  for (const DatasetSpec& spec : datasets) {
    auto made = fleet.Tables().Load(spec);
    if (!made.ok()) return made.status();
    with_tables.push_back({spec, *std::move(made)});
  }
  // InspectFleet has reported the hosts of the maps that do not answer.
  const auto answers = AskAll(fleet, expected, [](HostAdmin& host) { return host.ReadTables(); });
  if (!answers.ok()) return answers.status();
  const LeftOut nothing;
  Comparison comparison(expected, answers->all, with_tables, nothing, found);
  for (const auto& [host, unused] : answers->all) comparison.Compare(host);
  FindLeftChannels(fleet, expected, *answers, found);
  FleetCheck check = found.Take();
  check.not_asked = answers->silent;
  return check;
}

absl::StatusOr<FleetCheck> CheckDatabases(FleetOperator& fleet) {
  // The ledger is read first: what an operation changes while the hosts are asked is left out.
  const auto operations = fleet.ledger->List();
  if (!operations.ok()) return operations.status();
  const LeftOut left_out(*operations);
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const Expected expected = ExpectedOf(fleet, *maps);
  const auto answers = AskAll(fleet, expected, [](HostAdmin& host) -> absl::StatusOr<HostTables> {
    const auto names = host.ReadDatabases();
    if (!names.ok()) return names.status();
    HostTables databases;
    for (const std::string& name : *names) databases.try_emplace(name);
    return databases;
  });
  if (!answers.ok()) return answers.status();
  Findings found;
  Comparison comparison(expected, answers->all, {}, left_out, found);
  for (const auto& [host, unused] : answers->all) comparison.Compare(host);
  FindLeftChannels(fleet, expected, *answers, found);
  FleetCheck check = found.Take();
  check.not_asked = answers->silent;
  return check;
}

}  // namespace kvstore::shardops
