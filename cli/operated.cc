#include "cli/operated.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "cli/escape.h"

namespace kvstore::cli {

Operated::Operated(const Globals& globals)
    : options_(globals.StoreOptions()), zookeeper_(Mysql().zookeeper, nullptr) {
  const MySqlFleet& mysql = Mysql();
  fleet_ = std::make_unique<shardops::Fleet>(shardops::Fleet{.zookeeper = zookeeper_, .root = mysql.root});
  fleet_->access.admin = mysql.options;
  fleet_->access.admin.user = mysql.admin.user;
  fleet_->access.admin.password = mysql.admin.password;
  fleet_->access.replication_user = mysql.replication.user;
  fleet_->access.replication_password = mysql.replication.password;
  if (!globals.json) {
    // An operation on hosts goes on to its end, whoever reads what it tells; the exit code says that nobody
    // has.
    fleet_->tell = [](const std::string& text) {
      try {
        Print("{}\n", text);
        FlushOut();
      } catch (const OutputLost&) {
      }
    };
  }
}

const MySqlFleet& Operated::Mysql() const {
  const auto missing = [](const char* what) {
    return Failure{
        absl::InvalidArgumentError(fmt::format("config: has no {}; see docs/configuration.md", what))};
  };
  if (!options_.mysql) throw missing("mysql");
  if (options_.mysql->zookeeper.servers.empty()) throw missing("zookeeper, where the shard maps would be");
  if (options_.mysql->admin.user.empty()) throw missing("mysql.operator");
  if (options_.mysql->replication.user.empty()) throw missing("mysql.replication");
  return *options_.mysql;
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
    throw Failure{absl::InvalidArgumentError(fmt::format("range: '{}' is not FIRST-LAST", text))};
  }
  return range;
}

Host ParseHost(const std::string& text) { return OrFail(Host::Parse(text)); }

}  // namespace kvstore::cli
