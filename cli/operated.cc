#include "cli/operated.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "assembly/backend_config.h"
#include "cli/escape.h"

namespace kvstore::cli {

namespace {

OpenOptions FleetOptions(const Globals& globals) {
  if (globals.config.empty()) {
    WrongUsage(
        "--config is missing: name the configuration of the fleet with --config FILE, or in KV_CONFIG");
  }
  return globals.StoreOptions();
}

}  // namespace

Operated::Operated(const Globals& globals)
    : options_(FleetOptions(globals)), zookeeper_(Mysql().zookeeper, nullptr) {
  const MySqlFleetOptions& mysql = Mysql();
  fleet_ = std::make_unique<shardops::FleetOperator>(
      shardops::FleetOperator{.zookeeper = zookeeper_, .root = mysql.root});
  fleet_->access.admin = mysql.options;
  fleet_->access.admin.user = mysql.admin.user;
  fleet_->access.admin.password = mysql.admin.password;
  fleet_->access.replication_user = mysql.replication.user;
  fleet_->access.replication_password = mysql.replication.password;
  if (!globals.json) {
    // An operation on hosts runs to its end even if nobody reads its messages; the exit code reports that.
    fleet_->report = [](const std::string& text) {
      try {
        Print("{}\n", text);
        FlushOut();
      } catch (const OutputLost&) {
      }
    };
  }
}

const MySqlFleetOptions& Operated::Mysql() const {
  const auto missing = [](const char* what) {
    return Failure{
        absl::InvalidArgumentError(fmt::format("config: has no {}; see docs/configuration.md", what))};
  };
  const MySqlFleetOptions* fleet = FindFleet(options_);
  if (fleet == nullptr) throw missing("mysql");
  if (fleet->zookeeper.servers.empty()) throw missing("zookeeper, where the shard maps would be");
  if (fleet->admin.user.empty()) throw missing("mysql.operator");
  if (fleet->replication.user.empty()) throw missing("mysql.replication");
  return *fleet;
}

shardops::MoveRange ParseRange(const std::string& text, bool mod) {
  shardops::MoveRange range{.mod = mod};
  const auto number = [](std::string_view digits, uint32_t& shard) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), shard);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const std::string_view all = text;
  const size_t dash = all.find('-');
  if (dash == std::string_view::npos || !number(all.substr(0, dash), range.first) ||
      !number(all.substr(dash + 1), range.last)) {
    WrongUsage(
        fmt::format("range: '{}' is not a range of shards; write FIRST-LAST, for example 256-511", text));
  }
  OrFail(shardops::CheckRange(range));
  return range;
}

Host ParseHost(const std::string& text) { return OrWrongUsage(Host::Parse(text)); }

}  // namespace kvstore::cli
