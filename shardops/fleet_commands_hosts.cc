#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"
#include "catalog/ledger_json.h"
#include "shardops/answers.h"
#include "shardops/fleet_check.h"
#include "shardops/fleet_command.h"
#include "shardops/open.h"
#include "shardops/promote.h"
#include "shardops/status.h"

/// The commands that inspect hosts, open shards on them and change their roles, and those on the operations
/// that are under way.
namespace kvstore::shardops {
namespace {

/// The longest that a promotion may wait for its slave.
constexpr uint64_t kMaxCatchUpMs = 3'600'000;

/// Inspects all hosts, and compares their databases with the maps. While ZooKeeper is down it uses the copies
/// of the maps, compares nothing, and says so in `answer`.
absl::StatusOr<std::vector<HostReport>> Inspect(FleetCommand& command, FleetOperator& fleet, Json& answer) {
  auto reports = InspectFleet(fleet);
  if (reports.ok()) {
    const auto databases = CheckDatabases(fleet);
    if (databases.ok()) {
      answer["databases"] = ToJson(*databases);
    } else {
      answer["databases_error"] = std::string(databases.status().message());
    }
    return reports;
  }
  if (!absl::IsUnavailable(reports.status()) || command.options.data.empty()) return reports;
  auto by_copies = InspectFleetByCopies(fleet.access, command.options.data);
  if (!by_copies.ok()) return reports;
  answer["databases_error"] = std::string(reports.status().message());
  answer["by_copies"] = fmt::format(
      "ZooKeeper does not answer ({}). The maps are those of the copy in {}; nothing that is "
      "proposed here can be done before ZooKeeper is back",
      std::string(reports.status().message()), command.options.data.string());
  return by_copies;
}

Json EncodeOperation(const Operation& operation) {
  Json json = OperationToJson(operation);
  json["id"] = operation.id;
  return json;
}

}  // namespace

absl::StatusOr<Json> RunInit(FleetCommand& command) {
  const bool ignore_empty = command.Flag("ignore_empty");
  if (auto status = command.fields.Finish(); !status.ok()) return status;
  uint64_t shards = 0;
  std::map<std::string, uint64_t> left_alone;
  const auto progress = [&shards, report = command.ProgressOf("init")](uint64_t done, uint64_t total) {
    shards = total;
    return report(done, total);
  };
  if (auto status = command.options.init(progress, &left_alone, ignore_empty); !status.ok()) return status;
  Json answer = {{"shards", shards}};
  if (!left_alone.empty()) answer["left_alone"] = left_alone;
  return answer;
}

absl::StatusOr<Json> RunStatus(FleetCommand& command) {
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  Json answer = {{"databases", nullptr}};
  const auto reports = Inspect(command, ***fleet, answer);
  if (!reports.ok()) return reports.status();
  Json hosts = Json::array();
  for (const HostReport& report : *reports) hosts.push_back(ToJson(report));
  answer["hosts"] = std::move(hosts);
  return answer;
}

absl::StatusOr<Json> RunCheck(FleetCommand& command) {
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  const auto datasets = command.options.open_catalog()();
  if (!datasets.ok()) return datasets.status();
  const auto found = CheckFleet(***fleet, *datasets);
  if (!found.ok()) return found.status();
  return ToJson(*found);
}

absl::StatusOr<Json> RunOpen(FleetCommand& command) {
  const MoveRange range = command.Range(/*has_mod=*/false);
  const NewShards shards{
      range.first, range.last, {command.RequiredHost("master"), command.RequiredHost("slave")}};
  const bool dry_run = command.Flag("dry_run");
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  if (dry_run) return Json{{"problems", FindPairProblems(***fleet, shards.pair)}};
  const auto opened =
      OpenShards(***fleet, shards, command.options.open_catalog(), command.ProgressOf("open"));
  if (!opened.ok()) return opened.status();
  return Json{{"first", shards.first}, {"last", shards.last}, {"open_already", opened->already}};
}

absl::StatusOr<Json> RunPromote(FleetCommand& command) {
  const Host host = command.RequiredHost("host");
  PromoteOptions options{.emergency = command.Flag("emergency"),
                         .accept_loss = command.fields.OptionalUint("accept_loss", 0, UINT64_MAX)};
  if (const auto ms = command.fields.OptionalUint("catch_up_ms", 1, kMaxCatchUpMs)) {
    options.catch_up = std::chrono::milliseconds(*ms);
  }
  options.dry_run = command.Flag("dry_run");
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  const auto promotion = Promote(***fleet, host, options);
  if (!promotion.ok()) return promotion.status();
  return Json{{"master", promotion->after.master.ToString()},
              {"slave", promotion->after.slave.ToString()},
              {"follows", promotion->follows},
              {"write_pause_ms", promotion->write_pause_ms}};
}

absl::StatusOr<Json> RunFence(FleetCommand& command) {
  const Host host = command.RequiredHost("host");
  const auto fleet = command.OpenFleet();
  if (!fleet.ok()) return fleet.status();
  const auto ended = Fence(***fleet, host);
  if (!ended.ok()) return ended.status();
  return Json{{"ended", *ended}};
}

absl::StatusOr<Json> RunOperations(FleetCommand& command) {
  const auto fleet = command.OpenMaps();
  if (!fleet.ok()) return fleet.status();
  const auto all = (***fleet).ledger->List();
  if (!all.ok()) return all.status();
  Json list = Json::array();
  for (const Operation& operation : *all) {
    list.push_back(EncodeOperation(operation));
    list.back()["ended"] = ProcessHasEnded(operation.process);
  }
  return Json{{"operations", std::move(list)}};
}

absl::StatusOr<Json> RunRelease(FleetCommand& command) {
  const std::string id = command.fields.String("id");
  const bool force = command.Flag("force");
  const auto fleet = command.OpenMaps();
  if (!fleet.ok()) return fleet.status();
  const auto operation = (***fleet).ledger->Release(id, force);
  if (!operation.ok()) return operation.status();
  return Json{{"released", EncodeOperation(*operation)}};
}

}  // namespace kvstore::shardops
