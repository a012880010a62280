#include "tests/support/mysql_words.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kvstore::testing {
namespace {

using Words = std::pair<std::string_view, std::string_view>;

/// In this order: a word may be a part of a later one.
constexpr Words kSql[] = {
    {"CHANGE MASTER TO", "CHANGE REPLICATION SOURCE TO"},
    {"master_use_gtid = slave_pos",
     "source_auto_position = 1, get_source_public_key = 1, source_heartbeat_period = 2, source_retry_count = "
     "4294967295"},
    {"master_host", "source_host"},
    {"master_port", "source_port"},
    {"master_user", "source_user"},
    {"master_password", "source_password"},
    {"master_connect_retry", "source_connect_retry"},
    {"master_delay", "source_delay"},
    {"master_heartbeat_period", "source_heartbeat_period"},
    {"slave_net_timeout", "replica_net_timeout"},
    {"SHOW SLAVE STATUS", "SHOW REPLICA STATUS"},
    {"START SLAVE", "START REPLICA"},
    {"STOP SLAVE", "STOP REPLICA"},
    {"RESET SLAVE", "RESET REPLICA"},
    {"wait_no_slave", "wait_no_replica"},
    {"semi_sync_master", "semi_sync_source"},
    {"semi_sync_slave", "semi_sync_replica"},
};

constexpr Words kArguments[] = {
    {"--log-slave-updates", "--log-replica-updates"},
    {"--gtid-strict-mode=ON", "--gtid-mode=ON"},
    {"--read-only=ON", "--super-read-only=ON"},
    {"--read-only=OFF", "--super-read-only=OFF"},
    {"--rpl-semi-sync-master-wait-no-slave", "--rpl-semi-sync-source-wait-no-replica"},
    {"--rpl-semi-sync-master", "--rpl-semi-sync-source"},
    {"--rpl-semi-sync-slave", "--rpl-semi-sync-replica"},
    {"--slave-parallel-threads", "--replica-parallel-workers"},
};

/// Options without a counterpart in MySQL: all servers of a fleet are one domain there, transactions are
/// always committed in the order of the log, and a master that was killed keeps what it wrote.
constexpr std::string_view kNotThere[] = {"--gtid-domain-id", "--init-rpl-role", "--slave-parallel-mode"};

void Replace(std::string& text, const Words& words) {
  for (size_t at = 0; (at = text.find(words.first, at)) != std::string::npos; at += words.second.size()) {
    text.replace(at, words.first.size(), words.second);
  }
}

}  // namespace

std::string InMySqlWords(std::string sql) {
  for (const Words& words : kSql) Replace(sql, words);
  return sql;
}

std::vector<std::string> MySqlArguments(const std::vector<std::string>& mariadb) {
  std::vector<std::string> all;
  for (std::string argument : mariadb) {
    if (std::any_of(std::begin(kNotThere), std::end(kNotThere),
                    [&](std::string_view name) { return argument.starts_with(name); })) {
      continue;
    }
    if (argument.starts_with("--log-bin") && !argument.starts_with("--log-bin-trust")) {
      all.insert(all.end(), {"--enforce-gtid-consistency=ON", "--relay-log-recovery=ON", "--sync-binlog=0",
                             "--plugin-load-add=semisync_source.so;semisync_replica.so;mysql_clone.so"});
    }
    for (const Words& words : kArguments) Replace(argument, words);
    all.push_back(std::move(argument));
  }
  return all;
}

}  // namespace kvstore::testing
