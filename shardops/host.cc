#include "shardops/host.h"

#include <cppconn/exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "backends/mysql/driver/errors.h"
#include "backends/mysql/driver/schema.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "shardops/dialect.h"
#include "shardops/gtid.h"

namespace kvstore::shardops {
namespace {

using mysql::Rows;
using std::chrono::milliseconds;

/// How often a wait asks the server.
constexpr milliseconds kPollInterval{20};
/// The server's error for a connection that is not there.
constexpr int kNoSuchThread = 1094;
/// How often TakeClaim ends the connection of somebody who has the claim.
constexpr int kTakeAttempts = 3;
/// How long the connections of slaves may take to end.
constexpr std::chrono::seconds kEndSlaves{5};
/// EndClients waits this long before it ends connections: clients that send a write meanwhile are told that
/// the host is read-only. One whose connection ends instead cannot know what became of its write.
constexpr milliseconds kRefusals{30};
/// How long EndClients waits for answers that clients have yet to get.
constexpr std::chrono::seconds kAnswers{1};

absl::Status At(const Host& host, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}", host.ToString(), std::string(status.message()))};
}

/// Returns whether all of them are ended: those of some accounts only some may end.
bool EndConnections(mysql::Connection& connection, const std::vector<uint64_t>& ids) {
  bool all = true;
  for (const uint64_t id : ids) {
    try {
      connection.Run(fmt::format("KILL CONNECTION {}", id));
    } catch (const sql::SQLException& error) {
      // Most often it has ended by itself.
      all = all && error.getErrorCode() == kNoSuchThread;
    }
  }
  return all;
}

}  // namespace

Access WithLongReadTimeout(Access access) {
  constexpr uint32_t kDay = 86'400;
  access.admin.pool.read_timeout_s = kDay;
  return access;
}

absl::Status HostAdmin::ToStatus(const sql::SQLException& error) const {
  return At(host_, mysql::ToStatus(error));
}

absl::StatusOr<std::unique_ptr<HostAdmin>> HostAdmin::Open(const Host& host, const Access& access) {
  mysql::MySqlOptions options = access.admin;
  options.any_role = true;
  auto connection = mysql::Connection::Open(host, options);
  if (!connection.ok()) return At(host, connection.status());
  const Dialect& dialect = DialectOf(**connection);
  std::unique_ptr<HostAdmin> admin(new HostAdmin(host, *std::move(connection), dialect));
  absl::Status status =
      admin->WithConnection([&](mysql::Connection& on) { return At(host, dialect.Check(on)); });
  if (!status.ok()) return status;
  return admin;
}

absl::StatusOr<std::unique_ptr<HostAdmin>> HostAdmin::OpenClaimed(const Host& host, const Access& access) {
  auto admin = Open(host, WithLongReadTimeout(access));
  if (!admin.ok()) return admin;
  if (auto status = (*admin)->Claim(); !status.ok()) return status;
  return admin;
}

absl::Status HostAdmin::Claim() {
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    // This connection may be idle for long; the server must not end it and with it the claim.
    connection.Run("SET SESSION wait_timeout = 31536000");
    // It waits for a second, because the server may not have noticed yet that the last holder is gone.
    Rows rows = connection.Ask(fmt::format("SELECT GET_LOCK('{0}', 1), IS_USED_LOCK('{0}')", kOperatorLock));
    if (rows.Next() && !rows.IsNull(1) && rows.Uint(1) == 1) return absl::OkStatus();
    return absl::FailedPreconditionError(
        fmt::format("{0}: another operator is at work there, by connection {1}: wait until it is done; if "
                    "nobody is, KILL {1} there",
                    host_.ToString(), rows.IsNull(2) ? "?" : rows.Bytes(2)));
  });
}

absl::Status HostAdmin::TakeClaim() {
  absl::Status claimed = Claim();
  for (int attempt = 0; absl::IsFailedPrecondition(claimed) && attempt < kTakeAttempts; ++attempt) {
    absl::Status ended = WithConnection([](mysql::Connection& connection) -> absl::Status {
      Rows rows = connection.Ask(fmt::format("SELECT IS_USED_LOCK('{}')", kOperatorLock));
      if (rows.Next() && !rows.IsNull(1)) EndConnections(connection, {rows.Uint(1)});
      return absl::OkStatus();
    });
    if (!ended.ok()) return ended;
    claimed = Claim();
  }
  return claimed;
}

absl::StatusOr<uint64_t> HostAdmin::ClaimConnectionId() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    Rows rows = connection.Ask(fmt::format("SELECT CONNECTION_ID(), IS_USED_LOCK('{}')", kOperatorLock));
    if (rows.Next() && !rows.IsNull(2) && rows.Uint(1) == rows.Uint(2)) return rows.Uint(1);
    return absl::AbortedError(host_.ToString() +
                              ": this command has lost its claim on the host: run it again");
  });
}

// ---- reading ----

Engine HostAdmin::engine() const { return dialect_.engine(); }

absl::Status CheckSameEngine(const HostAdmin& one, const HostAdmin& other) {
  if (one.engine() == other.engine()) return absl::OkStatus();
  return Refuse(fmt::format(
      "{} is a {} server and {} a {} server: both hosts of a pair must have the same engine, since "
      "neither can replicate from the other by GTID",
      one.host().ToString(), one.words().engine, other.host().ToString(), other.words().engine));
}

absl::Status CheckIsMariaDb(const Host& host, Engine engine, std::string_view what) {
  if (engine == Engine::kMariaDb) return absl::OkStatus();
  return Refuse(fmt::format(
      "{}: is a MySQL server, and {} is possible on MariaDB servers only; docs/mysql.md says what "
      "each engine can do. Nothing has changed",
      host.ToString(), what));
}

bool IsSameRun(uint64_t one_started_s, uint64_t other_started_s) {
  return std::max(one_started_s, other_started_s) - std::min(one_started_s, other_started_s) <= 1;
}

bool IsBroken(const Following& following) {
  return !following.applies || following.error.find("error 1236") != std::string::npos;
}

absl::Status CheckReplicates(const Host& slave, const HostState& state, const Host& master) {
  const auto broken = [&](std::string_view why) {
    return absl::UnavailableError(
        fmt::format("{}: does not replicate {}: {}", slave.ToString(), master.ToString(), why));
  };
  if (!state.following) return broken("follows nobody");
  const Following& following = *state.following;
  if (following.master != master) return broken(fmt::format("follows {}", following.master.ToString()));
  if (!following.applies || !following.receives) {
    if (!following.error.empty()) return broken(following.error);
    return broken(following.applies ? "is not connected to it" : "does not apply what comes from it");
  }
  return absl::OkStatus();
}

absl::StatusOr<SlowStatements> HostAdmin::ReadSlow() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<SlowStatements> {
    return dialect_.ReadSlow(connection);
  });
}

absl::StatusOr<HostState> HostAdmin::Read() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<HostState> {
    HostState state{.host = host_, .engine = engine()};
    dialect_.ReadState(connection, state);
    return state;
  });
}

absl::StatusOr<std::vector<std::string>> HostAdmin::ReadDatabases() {
  return WithConnection([](mysql::Connection& connection) -> absl::StatusOr<std::vector<std::string>> {
    std::vector<std::string> names;
    Rows rows = connection.Ask(
        "SELECT schema_name FROM information_schema.schemata "
        "WHERE schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')");
    while (rows.Next()) names.push_back(rows.Bytes(1));
    return names;
  });
}

absl::StatusOr<uint64_t> HostAdmin::ReadSize() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    return dialect_.ReadSize(connection);
  });
}

absl::StatusOr<HostTables> HostAdmin::ReadTables() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<HostTables> {
    HostTables tables;
    Rows rows = connection.Ask(
        "SELECT schema_name, table_name FROM information_schema.schemata "
        "LEFT JOIN information_schema.tables ON table_schema = schema_name "
        "WHERE schema_name REGEXP '^(db|mod)[0-9]{5}(_moved)?$'");
    while (rows.Next()) {
      auto& names = tables[rows.Bytes(1)];
      if (!rows.IsNull(2)) names.insert(rows.Bytes(2));
    }
    return tables;
  });
}

std::string AllOf(const HostState& state) {
  if (!state.following || state.following->received.empty()) return state.gtid;
  const std::string& received = state.following->received;
  return state.engine == Engine::kMySql ? UnionOfSets(state.gtid, received)
                                        : LatestOfEachDomain(state.gtid, received);
}

uint64_t CountNotReceived(const std::string& gtid, const HostState& slave) {
  return CountMissing(gtid, AllOf(slave));
}

// ---- changing ----

absl::Status HostAdmin::MakeShard(uint32_t shard, uint32_t mod_shards,
                                  const std::vector<DatasetSpec>& datasets, const mysql::ReadSpecs& read) {
  return WithConnection([&](mysql::Connection& connection) {
    mysql::LeftAlone left_alone;
    return mysql::MakeShard(connection, ShardSpace::kId, shard, mod_shards, datasets, read,
                            /*records=*/nullptr, left_alone);
  });
}

absl::Status HostAdmin::StopWrites(std::chrono::seconds wait) {
  return WithConnection([&](mysql::Connection& connection) {
    dialect_.StopWrites(connection, wait);
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::AllowWrites() {
  return WithConnection([&](mysql::Connection& connection) {
    dialect_.AllowWrites(connection);
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::CloseToClients() {
  return WithConnection([&](mysql::Connection& connection) {
    connection.Run("SET GLOBAL offline_mode = ON");
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::OpenToClients() {
  return WithConnection([&](mysql::Connection& connection) {
    connection.Run("SET GLOBAL offline_mode = OFF");
    return absl::OkStatus();
  });
}

absl::StatusOr<uint64_t> HostAdmin::EndClients() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    const std::vector<uint64_t> ids = dialect_.Clients(connection);
    std::this_thread::sleep_for(kRefusals);
    // A commit may be done and its client not told yet. One that has been seen to write nothing was told.
    std::set<uint64_t> untold(ids.begin(), ids.end());
    const auto deadline = std::chrono::steady_clock::now() + kAnswers;
    for (;;) {
      const std::vector<uint64_t> writing = dialect_.WritingClients(connection);
      std::erase_if(untold, [&](uint64_t id) { return !absl::c_linear_search(writing, id); });
      if (untold.empty() || std::chrono::steady_clock::now() >= deadline) break;
      Reached("clients.awaited");
      std::this_thread::sleep_for(kPollInterval);
    }
    EndConnections(connection, ids);
    return ids.size();
  });
}

absl::StatusOr<uint64_t> HostAdmin::EndAllClients() {
  return WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
    const std::vector<uint64_t> ids = dialect_.Clients(connection);
    if (EndConnections(connection, ids)) return ids.size();
    return absl::FailedPreconditionError(fmt::format(
        "{}: a connection cannot be ended by this account, such as one of an account with SYSTEM_USER: end "
        "it, and run the command again",
        host_.ToString()));
  });
}

absl::Status HostAdmin::AwaitGtid(const std::string& gtid, milliseconds wait) {
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    if (dialect_.AwaitGtid(connection, gtid, wait)) return absl::OkStatus();
    return absl::DeadlineExceededError(
        fmt::format("{}: has not applied all up to {} in {} ms", host_.ToString(), gtid, wait.count()));
  });
}

absl::Status HostAdmin::AwaitReceived(const std::string& gtid, milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    const auto state = Read();
    if (!state.ok()) return state.status();
    if (CountNotReceived(gtid, *state) == 0) return absl::OkStatus();
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          fmt::format("{}: has not received all up to {} in {} ms", host_.ToString(), gtid, wait.count()));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

absl::Status HostAdmin::ApplyAll(milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    dialect_.StopReceiving(connection);
    for (;;) {
      const auto following = dialect_.ReadFollowing(connection);
      if (!following) return absl::OkStatus();
      if (dialect_.HasAppliedAll(connection, *following)) return absl::OkStatus();
      if (!following->applies) {
        return absl::FailedPreconditionError(
            fmt::format("{}: what came from its master is not applied: {}\nMend that, {} there, and run the "
                        "command again "
                        "(nothing else while the master is away: what has come in would be thrown away)",
                        host_.ToString(), following->error, words().start_applying));
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        return absl::DeadlineExceededError(
            fmt::format("{}: has not applied all that it has in {} ms", host_.ToString(), wait.count()));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  });
}

absl::Status HostAdmin::BecomeMaster() {
  return WithConnection([&](mysql::Connection& connection) {
    dialect_.BecomeMaster(connection);
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::SetSemiSync(bool wait_no_slave, uint64_t timeout_ms) {
  return WithConnection([&](mysql::Connection& connection) {
    dialect_.SetSemiSync(connection, wait_no_slave, timeout_ms);
    // A master that has stopped waiting resumes when a slave acknowledges an event, so one is written that
    // changes nothing. Switching semi-synchronous replication off and on instead would leave commits of that
    // moment waiting for acknowledgements that no slave was asked for.
    connection.Run("DROP TABLE IF EXISTS mysql.kvstore_none");
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::EnableSemiSync(bool on) {
  return WithConnection([&](mysql::Connection& connection) {
    dialect_.EnableSemiSync(connection, on);
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::StopWaitingForSlaves() {
  return WithConnection([&](mysql::Connection& connection) -> absl::Status {
    dialect_.StopWaitingForNoSlave(connection);
    const auto deadline = std::chrono::steady_clock::now() + kEndSlaves;
    for (;;) {
      EndConnections(connection, dialect_.Slaves(connection));
      if (dialect_.SemiSyncSlaves(connection) == 0) return absl::OkStatus();
      if (std::chrono::steady_clock::now() >= deadline) {
        return absl::UnavailableError(
            fmt::format("{}: has slaves whose connections do not end: {} on those of them that are no longer "
                        "to be, then run "
                        "the command again",
                        host_.ToString(), words().stop_slave));
      }
      std::this_thread::sleep_for(kPollInterval);
    }
  });
}

absl::Status HostAdmin::Follow(const Host& master, const Access& access) {
  return WithConnection([&](mysql::Connection& connection) {
    dialect_.Follow(connection, master, access);
    return absl::OkStatus();
  });
}

absl::Status HostAdmin::ForgetMaster() {
  return WithConnection([&](mysql::Connection& connection) {
    dialect_.ForgetMaster(connection);
    return absl::OkStatus();
  });
}

}  // namespace kvstore::shardops
