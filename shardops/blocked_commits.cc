#include "shardops/blocked_commits.h"

#include <fmt/format.h>

#include "shardops/engine.h"

namespace kvstore::shardops {
namespace {

/// How long a connection that blocks commits may be idle.
constexpr int kIdleS = 10;

/// MySQL closes all tables before it blocks commits, and waits for each statement that uses one. If it gives
/// up, a table that a statement uses stays closed to all others until that statement ends. So nothing is
/// begun while a statement runs that may take long. A commit that waits for the host's slave has no table
/// open; it is waited for as other commits are.
absl::Status CheckNothingRunsLong(HostAdmin& host) {
  return host.WithConnection([&](mysql::Connection& connection) -> absl::Status {
    mysql::Rows rows = connection.Ask(
        "SELECT id, time FROM performance_schema.processlist WHERE command IN ('Query', 'Execute') AND "
        "user NOT IN ('system user', 'event_scheduler') AND id <> CONNECTION_ID() AND time >= 1 AND "
        "COALESCE(state, '') NOT LIKE 'Waiting for semi-sync ACK%' ORDER BY time DESC LIMIT 1");
    if (!rows.Next()) return absl::OkStatus();
    return absl::UnavailableError(fmt::format(
        "{}: commits cannot be blocked, since a statement has been running for {} s: wait for its "
        "end, or KILL {} there",
        host.host().ToString(), rows.Uint(2), rows.Uint(1)));
  });
}

}  // namespace

absl::StatusOr<BlockedCommits> BlockedCommits::Block(const Host& host, const Access& access) {
  auto admin = HostAdmin::Open(host, access);
  if (!admin.ok()) return admin.status();
  const bool mysql = (*admin)->engine() == Engine::kMySql;
  if (mysql) {
    if (auto status = CheckNothingRunsLong(**admin); !status.ok()) return status;
  }
  auto status = (*admin)->WithConnection([&](mysql::Connection& connection) {
    connection.Run(fmt::format("SET SESSION lock_wait_timeout = 1, wait_timeout = {}", kIdleS));
    if (mysql) {
      connection.Run("FLUSH TABLES WITH READ LOCK");
    } else {
      connection.Run("BACKUP STAGE START");
      connection.Run("BACKUP STAGE BLOCK_COMMIT");
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return BlockedCommits(*std::move(admin));
}

absl::Status BlockedCommits::Check() {
  auto status = host_->WithConnection([](mysql::Connection& connection) {
    connection.Ask("SELECT 1");
    return absl::OkStatus();
  });
  if (status.ok()) return status;
  return absl::UnavailableError(
      fmt::format("commits were not blocked for long enough: {}", std::string(status.message())));
}

}  // namespace kvstore::shardops
