#include "backends/mysql/fleet/elsewhere.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/driver/connection.h"
#include "backends/mysql/driver/errors.h"

namespace kvstore::mysql {
namespace {

using Names = std::set<std::string>;

absl::StatusOr<Names> QueryNames(const Host& host, const MySqlOptions& options, const std::string& question) {
  auto connection = Connection::Open(host, options);
  if (!connection.ok()) return connection.status();
  try {
    Names names;
    Rows rows = (*connection)->Ask(question);
    while (rows.Next()) names.insert(rows.Bytes(1));
    return names;
  } catch (const sql::SQLException& error) {
    return ToStatus(error);
  }
}

absl::StatusOr<Names> Databases(const Host& host, const MySqlOptions& options) {
  return QueryNames(host, options, "SHOW DATABASES");
}

/// Returns the databases that have tables of datasets. In the others no ID was ever given.
absl::StatusOr<Names> UsedDatabases(const Host& host, const MySqlOptions& options) {
  return QueryNames(
      host, options,
      "SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_name <> 'kv$clock'");
}

/// A database that its master lacks.
struct Missing {
  ShardSpace space = ShardSpace::kId;
  std::string database;
  Host master;
  Host slave;
};

/// The option by which commands on maps mean the map that has the database; "" or "--mod ".
const char* OptionOf(const Missing& one) { return one.space == ShardSpace::kMod ? "--mod " : ""; }

/// The databases of a host.
struct Answer {
  Names all;
  Names used;
};

/// Asks hosts for their databases. Those that do not answer are left out.
std::map<Host, Answer> AskHosts(const std::set<Host>& hosts, const MySqlOptions& options) {
  std::map<Host, Answer> found;
  for (const Host& host : hosts) {
    auto all = Databases(host, options);
    auto used = all.ok() ? UsedDatabases(host, options) : all.status();
    if (used.ok()) found.emplace(host, Answer{*std::move(all), *std::move(used)});
  }
  return found;
}

absl::Status UsedElsewhereError(const Missing& one, const Host& host) {
  return absl::FailedPreconditionError(
      fmt::format("{0}: by the shard map this database is at {1}, but {1} does not have it, and {2} does. "
                  "Either the map is wrong, or {1} has lost data. kv shards history {3}shows what the map "
                  "was, kv shards undo {3}puts the one before in force again; kv shards check names all such "
                  "shards",
                  one.database, one.master.ToString(), host.ToString(), OptionOf(one)));
}

absl::Status EmptyElsewhereError(const Missing& one, const Host& host) {
  return absl::FailedPreconditionError(
      fmt::format("{0}: by the shard map this database is at {1}, but {1} does not have it, and {2} has an "
                  "empty one. If the map is wrong, kv shards undo {3}puts the one before in force again, and "
                  "kv shards history {3}shows what it was. If it is right, kv shards init --ignore-empty "
                  "makes the shards where the map has them: no dataset has anything in those that are "
                  "elsewhere",
                  one.database, one.master.ToString(), host.ToString(), OptionOf(one)));
}

}  // namespace

absl::Status CheckNowhereElse(const Fleet& fleet, std::span<const Host> others, EmptyElsewhere empty) {
  std::map<Host, Names> there;  // the databases of each master
  std::set<Host> hosts(others.begin(), others.end());
  std::vector<Missing> missing;
  for (const ShardSpace space : {ShardSpace::kId, ShardSpace::kMod}) {
    for (const ShardRange& range : fleet.map(space).ranges()) {
      hosts.insert(range.slave);
      hosts.insert(range.master);
      auto found = there.find(range.master);
      if (found == there.end()) {
        auto names = Databases(range.master, fleet.options());
        if (!names.ok()) return names.status();
        found = there.emplace(range.master, *std::move(names)).first;
      }
      for (uint32_t shard = range.first; shard <= range.last; ++shard) {
        std::string name = DatabaseName(space, shard);
        // A shard that is being moved away has its tables under another name.
        if (found->second.contains(name) || found->second.contains(MovedName(name))) continue;
        missing.push_back({space, std::move(name), range.master, range.slave});
      }
    }
  }
  if (missing.empty()) return absl::OkStatus();
  const std::map<Host, Answer> found = AskHosts(hosts, fleet.options());
  for (const Missing& one : missing) {
    for (const auto& [host, names] : found) {
      if (names.used.contains(one.database)) return UsedElsewhereError(one, host);
    }
  }
  if (empty == EmptyElsewhere::kIgnored) return absl::OkStatus();
  for (const Missing& one : missing) {
    for (const auto& [host, names] : found) {
      if (names.all.contains(one.database) && host != one.slave) return EmptyElsewhereError(one, host);
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
