#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "backends/mysql/driver/connection.h"
#include "shardops/engine.h"
#include "shardops/host_state.h"

namespace kvstore::shardops {

/// The statements by which hosts of one engine are inspected and change their roles. HostAdmin is what others
/// call; it has one of these, which fits its server. All calls but Check throw sql::SQLException. Without
/// state; any thread may use it.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual Engine engine() const = 0;

  /// FAILED_PRECONDITION if the server lacks what these statements need, such as a plugin; the message does
  /// not name the host.
  virtual absl::Status Check(mysql::Connection& connection) const = 0;

  // ---- reading ----

  /// Fills in all of a state but its host and engine.
  virtual void ReadState(mysql::Connection& connection, HostState& state) const = 0;
  /// How the host replicates from its master, but for the ID of the IO thread; none if it follows nobody.
  virtual std::optional<Following> ReadFollowing(mysql::Connection& connection) const = 0;
  /// As HostAdmin's.
  virtual SlowStatements ReadSlow(mysql::Connection& connection) const = 0;
  virtual uint64_t ReadSize(mysql::Connection& connection) const = 0;
  /// The IDs of all connections of clients but this one.
  virtual std::vector<uint64_t> Clients(mysql::Connection& connection) const = 0;
  /// The IDs of the connections of clients, without this one, that run a statement which is no SELECT. Once
  /// the host takes no more writes, these have yet to be told that theirs was committed, or refused.
  virtual std::vector<uint64_t> WritingClients(mysql::Connection& connection) const = 0;
  /// The IDs of the connections by which slaves get the binary log.
  virtual std::vector<uint64_t> Slaves(mysql::Connection& connection) const = 0;
  /// How many semi-synchronous slaves the host counts.
  virtual uint64_t SemiSyncSlaves(mysql::Connection& connection) const = 0;
  /// Whether all that has arrived, as `following` has it, is applied.
  virtual bool HasAppliedAll(mysql::Connection& connection, const Following& following) const = 0;
  /// Whether the host has applied all up to `gtid`, or does so within `wait`.
  virtual bool AwaitGtid(mysql::Connection& connection, const std::string& gtid,
                         std::chrono::milliseconds wait) const = 0;

  // ---- changing: as the calls of HostAdmin of these names ----

  virtual void StopWrites(mysql::Connection& connection, std::chrono::seconds wait) const = 0;
  virtual void AllowWrites(mysql::Connection& connection) const = 0;
  virtual void StopReceiving(mysql::Connection& connection) const = 0;
  virtual void BecomeMaster(mysql::Connection& connection) const = 0;
  virtual void SetSemiSync(mysql::Connection& connection, bool wait_no_slave, uint64_t timeout_ms) const = 0;
  virtual void EnableSemiSync(mysql::Connection& connection, bool on) const = 0;
  /// Commits no longer wait while no slave is connected.
  virtual void StopWaitingForNoSlave(mysql::Connection& connection) const = 0;
  virtual void Follow(mysql::Connection& connection, const Host& master, const Access& access) const = 0;
  /// Stops replicating from the master, and forgets it.
  virtual void ForgetMaster(mysql::Connection& connection) const = 0;

 protected:
  /// The columns that both engines have; a dialect adds its own after them.
  static constexpr char kCommonColumns[] =
      "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS UNSIGNED), @@version, @@server_id, @@read_only, @@log_bin, "
      "@@max_allowed_packet";
  static constexpr uint32_t kOwnColumn = 7;  // the first of a dialect's own columns
  /// Runs "SELECT kCommonColumns, `own`", fills in what the common columns say, and returns the row.
  static mysql::Rows ReadVariables(mysql::Connection& connection, std::string_view own, HostState& state);
  /// Fills in what SHOW GLOBAL STATUS has. `master` and `slave` are the engine's names of the roles in the
  /// counters of semi-synchronous replication.
  static void ReadStatus(mysql::Connection& connection, std::string_view master, std::string_view slave,
                         HostState& state);
  static std::vector<uint64_t> ReadIds(mysql::Connection& connection, const std::string& text);
};

const Dialect& MariaDbDialect();
const Dialect& MySqlDialect();
/// Returns the dialect of the server behind a connection.
const Dialect& DialectOf(const mysql::Connection& connection);

}  // namespace kvstore::shardops
