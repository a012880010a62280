#include "operate/switch.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/clock.h"
#include "shardops/host.h"
#include "shardops/status.h"

namespace kvstore::operate {
namespace {

using shardops::HostAdmin;
using shardops::Pair;
using shardops::Refuse;

absl::Status Write(PairRecords& records, const Pair& pair, PairRecord record, bool on,
                   const std::string& by) {
  record.on = on;
  record.by = by;
  record.since_ms = WallClockMs();
  return records.Save(pair, record);
}

}  // namespace

absl::StatusOr<bool> StartsWritable(HostAdmin& admin) {
  const bool is_mariadb = admin.engine() == shardops::Engine::kMariaDb;
  return admin.WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<bool> {
    mysql::Rows rows = connection.Ask(
        is_mariadb ? "SELECT global_value_origin <> 'SQL' AND global_value = 'OFF' FROM "
                     "information_schema.system_variables WHERE variable_name = 'READ_ONLY'"
                   : "SELECT (variable_source <> 'DYNAMIC' AND @@global.read_only = 0) OR EXISTS "
                     "(SELECT 1 FROM performance_schema.persisted_variables p WHERE "
                     "p.variable_name IN ('read_only', 'super_read_only') AND p.variable_value = 'OFF') FROM "
                     "performance_schema.variables_info WHERE variable_name = 'read_only'");
    return rows.Next() && rows.Uint(1) != 0;
  });
}

std::string WritableStart(shardops::Engine engine) {
  return fmt::format(
      "would take writes when it is started again, after its death, beside the slave that has taken its "
      "place: {}, start it again, and kv shards promote it",
      engine == shardops::Engine::kMySql
          ? "set super_read_only = ON in its configuration (RESET PERSIST read_only and RESET PERSIST "
            "super_read_only there remove what SET PERSIST has stored)"
          : "set read_only = 1 in its configuration");
}

absl::StatusOr<Pair> FindPair(const shardops::Maps& maps, const Host& host) {
  std::vector<Pair> found;
  for (const Pair& pair : maps.Pairs()) {
    if (pair.Has(host)) found.push_back(pair);
  }
  if (found.size() == 1) return found.front();
  return Refuse(
      found.empty()
          ? fmt::format("{}: is in no shard map: kv shards status lists the hosts that are", host.ToString())
          : fmt::format("{}: is in more than one pair of the shard maps: kv shards status "
                        "says which",
                        host.ToString()));
}

absl::Status SwitchOn(shardops::FleetOperator& fleet, PairRecords& records, const Pair& pair) {
  std::string problems;
  const auto add = [&](const Host& host, const std::string& problem) {
    problems += fmt::format("\n{}: {}", host.ToString(), problem);
  };
  std::optional<shardops::HostState> master_state;
  for (const bool master : {true, false}) {
    const shardops::HostReport report = shardops::InspectHost(fleet, pair, master);
    for (const std::string& problem : report.problems) add(report.host, problem);
    if (!report.state) continue;
    if (master) {
      master_state = report.state;
    } else if (master_state) {
      if (const auto stray = shardops::StrayTransactions(*report.state, *master_state); !stray.empty()) {
        add(report.host, stray);
      }
    }
    const auto admin = HostAdmin::Open(report.host, fleet.access);
    if (!admin.ok()) return admin.status();
    const auto writable = StartsWritable(**admin);
    if (!writable.ok()) return writable.status();
    if (*writable) add(report.host, WritableStart(report.state->engine));
  }
  const std::string name = PairRecords::NameOf(pair);
  if (!problems.empty()) return Refuse(fmt::format("{}: stays off:{}", name, problems));
  const auto record = records.Load(pair);
  if (!record.ok()) return record.status();
  if (record->on) return absl::OkStatus();
  return Write(records, pair, *record, /*on=*/true, fleet.ledger->who());
}

absl::Status SwitchOff(shardops::FleetOperator& fleet, PairRecords& records, const Pair& pair) {
  const auto record = records.Load(pair);
  if (!record.ok()) return record.status();
  if (!record->on) return absl::OkStatus();
  return Write(records, pair, *record, /*on=*/false, fleet.ledger->who());
}

}  // namespace kvstore::operate
