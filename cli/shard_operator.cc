#include "cli/shard_operator.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "assembly/backend_config.h"
#include "assembly/fleet_init.h"
#include "cli/escape.h"
#include "cli/progress.h"
#include "client/client.h"
#include "operate/commands.h"
#include "shardops/fleet_commands.h"

namespace kvstore::cli {
namespace {

/// Shows a progress bar for each step of an operation.
class StepBars {
 public:
  bool Show(std::string_view step, uint64_t done, uint64_t total) {
    if (!bar_ || step != step_) {
      bar_.reset();
      step_ = step;
      bar_ = std::make_unique<ProgressBar>(step_, step_ == "copy"      ? "bytes"
                                                  : step_ == "compare" ? "tables"
                                                                       : "shards");
    }
    bar_->Show(done, total);
    return true;
  }
  void Close() { bar_.reset(); }

 private:
  std::string step_;
  std::unique_ptr<ProgressBar> bar_;
};

absl::StatusOr<shardops::Access> AccessOf(const MySqlFleetOptions* mysql) {
  const auto missing = [](const char* what) {
    return absl::InvalidArgumentError(
        fmt::format("config: {} is missing; commands on a fleet need it, see docs/configuration.md", what));
  };
  if (mysql == nullptr) return missing("mysql");
  if (mysql->zookeeper.servers.empty()) return missing("mysql.zookeeper (where the shard maps must be)");
  if (mysql->admin.user.empty()) return missing("mysql.operator");
  if (mysql->replication.user.empty()) return missing("mysql.replication");
  shardops::Access access{.admin = mysql->options,
                          .replication_user = mysql->replication.user,
                          .replication_password = mysql->replication.password};
  access.admin.user = mysql->admin.user;
  access.admin.password = mysql->admin.password;
  return access;
}

/// Prints a line of an operation on hosts, which runs to its end even if nobody reads its lines; the exit
/// code then says that output was lost.
void PrintLine(const std::string& line) {
  try {
    Print("{}\n", line);
    FlushOut();
  } catch (const OutputLost&) {
  }
}

std::unique_ptr<ShardOperations> OpenServer(const Globals& globals) {
  return OrFail(client::Client::Open(globals.server, globals.ServerConnection()));
}

}  // namespace

shardops::FleetOptions FleetOptionsOf(const OpenOptions& store) {
  const auto kept = std::make_shared<const OpenOptions>(store);
  const MySqlFleetOptions* const mysql = FindFleet(*kept);
  shardops::FleetOptions fleet{.access = AccessOf(mysql), .data = kept->data};
  if (mysql != nullptr && !mysql->zookeeper.servers.empty()) {
    fleet.zookeeper = mysql->zookeeper;
    fleet.root = mysql->root;
    fleet.has_operator = !mysql->admin.user.empty();
  } else if (kept->coordination) {
    fleet.zookeeper = kept->coordination->zookeeper;
    fleet.root = kept->coordination->root;
  }
  fleet.open_catalog = [kept] { return MySqlDatasetsReader(*kept); };
  fleet.init = [kept](const Progress& progress, LeftAlone* left_alone, bool ignore_empty) {
    return InitShards(*kept, progress, left_alone, ignore_empty);
  };
  return fleet;
}

std::unique_ptr<shardops::FleetSession> OpenConfiguredFleet(const Globals& globals) {
  if (globals.config.empty()) {
    WrongUsage(
        "--config is missing: name the configuration of the fleet with --config FILE, or in KV_CONFIG");
  }
  const shardops::FleetOptions fleet = FleetOptionsOf(globals.StoreOptions());
  OrFail(fleet.access.status());
  return std::make_unique<shardops::FleetSession>(fleet, /*who=*/"",
                                                  globals.json ? nullptr : std::function(PrintLine));
}

std::unique_ptr<ShardOperations> OpenFleet(const CLI::App& command, const Globals& globals) {
  if (UsesServer(command, !globals.config.empty(), globals)) return OpenServer(globals);
  if (globals.config.empty()) {
    WrongUsage(
        "--config is missing: name the configuration of the fleet with --config FILE, or in KV_CONFIG; or a "
        "server that operates the fleet with --server ADDR, or in KV_SERVER");
  }
  return std::make_unique<shardops::FleetCommands>(FleetOptionsOf(globals.StoreOptions()),
                                                   operate::Commands());
}

std::unique_ptr<ShardOperations> OpenStoreOperations(const CLI::App& command, const Globals& globals) {
  if (UsesServer(command, !globals.config.empty(), globals)) return OpenServer(globals);
  return std::make_unique<shardops::FleetCommands>(FleetOptionsOf(globals.StoreOptions()),
                                                   operate::Commands());
}

std::unique_ptr<ShardOperations> OpenMapOperations(const CLI::App& command, MapPlace& place,
                                                   const Globals& globals) {
  if (place.IsOfServer(command, globals)) return OpenServer(globals);
  place.Complete(globals);
  shardops::FleetOptions options;
  if (!globals.config.empty()) options = FleetOptionsOf(globals.StoreOptions());
  options.zookeeper = place.zookeeper;
  options.root = place.root;
  return std::make_unique<shardops::FleetCommands>(std::move(options));
}

Json Operate(ShardOperations& operations, const Json& command, const Globals& globals, Report report) {
  StepBars bars;
  const ShardEvents events{.line =
                               [&](const std::string& line) {
                                 bars.Close();
                                 if (!globals.json && report == Report::kLines) PrintLine(line);
                               },
                           .progress = [&](std::string_view step, uint64_t done,
                                           uint64_t total) { return bars.Show(step, done, total); }};
  auto answer = operations.Operate(command, events);
  bars.Close();
  return OrFail(std::move(answer));
}

void PrintAnswer(Json answer) {
  answer["ok"] = true;
  PrintJson(answer);
}

}  // namespace kvstore::cli
