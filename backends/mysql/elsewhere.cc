#include "backends/mysql/elsewhere.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/connection.h"
#include "backends/mysql/errors.h"

namespace kvstore::mysql {
namespace {

using Names = std::set<std::string>;

absl::StatusOr<Names> Databases(const Host& host, const MySqlOptions& options) {
  auto connection = Connection::Open(host, options);
  if (!connection.ok()) return connection.status();
  try {
    Names names;
    Rows rows = (*connection)->Ask("SHOW DATABASES");
    while (rows.Next()) names.insert(rows.Bytes(1));
    return names;
  } catch (const sql::SQLException& error) {
    return ToStatus(error);
  }
}

/// A database that its master lacks.
struct Missing {
  std::string database;
  Host master;
};

}  // namespace

absl::Status CheckNowhereElse(const Fleet& fleet, std::span<const Host> others) {
  std::map<Host, Names> asked;
  std::set<Host> hosts(others.begin(), others.end());
  std::vector<Missing> missing;
  for (const Space space : {Space::kId, Space::kMod}) {
    for (const ShardRange& range : fleet.map(space).ranges()) {
      hosts.insert(range.slave);
      auto found = asked.find(range.master);
      if (found == asked.end()) {
        auto names = Databases(range.master, fleet.options());
        if (!names.ok()) return names.status();
        found = asked.emplace(range.master, *std::move(names)).first;
      }
      for (uint32_t shard = range.first; shard <= range.last; ++shard) {
        std::string name = DatabaseName(space, shard);
        // One that is being moved away has its tables under another name.
        if (found->second.contains(name) || found->second.contains(MovedName(name))) continue;
        missing.push_back({std::move(name), range.master});
      }
    }
  }
  if (missing.empty()) return absl::OkStatus();
  for (const Host& host : hosts) {
    if (asked.contains(host)) continue;
    if (auto names = Databases(host, fleet.options()); names.ok()) asked.emplace(host, *std::move(names));
  }
  for (const Missing& one : missing) {
    for (const auto& [host, names] : asked) {
      if (!names.contains(one.database)) continue;
      return absl::FailedPreconditionError(fmt::format(
          "{0}: the map has it at {1}, which has no such database, and {2} has: the map is wrong there, or "
          "{1} has "
          "lost what it had. kv shards history shows what the map was, kv shards undo puts the one before in "
          "force again; kv shards check names all such shards",
          one.database, one.master.ToString(), host.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvstore::mysql
