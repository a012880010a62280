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
  std::string database;
  Host master;
};

}  // namespace

absl::Status CheckNowhereElse(const Fleet& fleet, std::span<const Host> others) {
  std::map<Host, Names> there;  // the databases of each master
  std::set<Host> hosts(others.begin(), others.end());
  std::vector<Missing> missing;
  for (const Space space : {Space::kId, Space::kMod}) {
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
        missing.push_back({std::move(name), range.master});
      }
    }
  }
  if (missing.empty()) return absl::OkStatus();
  std::map<Host, Names> used;
  for (const Host& host : hosts) {
    if (auto names = UsedDatabases(host, fleet.options()); names.ok()) used.emplace(host, *std::move(names));
  }
  for (const Missing& one : missing) {
    for (const auto& [host, names] : used) {
      if (!names.contains(one.database)) continue;
      return absl::FailedPreconditionError(
          fmt::format("{0}: the map has it at {1}, which has no such database, and {2} has: the map is wrong "
                      "there, or {1} has lost what it had. kv shards history shows what the map was, "
                      "kv shards undo puts the one before in force again; kv shards check names all such "
                      "shards",
                      one.database, one.master.ToString(), host.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
