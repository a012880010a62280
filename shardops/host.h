#pragma once

#include <cppconn/exception.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/connection.h"
#include "backends/mysql/options.h"
#include "backends/mysql/shard_tables.h"
#include "kvstore_api/dataset.h"
#include "shardmap/shard_map.h"

/// A MySQL host as its operator sees it: what it is, whom it follows, and the few changes that make a master
/// of a slave. Replication is the server's own; that of MariaDB, by GTID.
namespace kvstore::shardops {

/// Who operators are on the hosts.
struct Access {
  /// Of a user with the rights of an administrator; any_role is implied.
  mysql::MySqlOptions admin;
  /// With which slaves follow masters.
  std::string replication_user;
  std::string replication_password;
};

/// The same, for statements that take as long as they take.
Access Patient(Access access);

/// How a host follows its master.
struct Following {
  Host master;
  /// Its events come in: the IO thread is connected.
  bool receives = false;
  /// It has tried to since it lost the master: the IO thread runs, and is not connected.
  bool reconnects = false;
  /// What came in is applied: the SQL thread runs.
  bool applies = false;
  /// All that came in is applied.
  bool caught_up = false;
  /// The last transactions that came in, as in HostState::gtid; empty: none since it began to follow.
  std::string received;
  /// The connection number of the IO thread; 0: it stands still. What was received and not applied is thrown
  /// away, and fetched again, when another one begins.
  uint64_t thread = 0;
  std::optional<uint64_t> lag_s;  ///< None while either thread stands still.
  std::string error;              ///< The last of either thread; empty: none.
};

/// A master that waits so long for its slave, or longer, has not answered without it.
inline constexpr uint64_t kForEverMs = 3'600'000;

/// Statements of clients that a host is at for long (kSlowStatementS).
struct SlowStatements {
  uint64_t count = 0;
  /// Of the one that runs longest:
  uint64_t thread = 0;  ///< KILL with this number ends it.
  std::string table;    ///< Of a shard, "db00017.events"; empty if it names none.
  uint64_t seconds = 0;
  std::string state;  ///< "Waiting for table metadata lock", in the server's words.
};
inline constexpr uint64_t kSlowStatementS = 5;

/// What a host says of itself.
struct HostState {
  Host host;
  std::string version;
  uint64_t server_id = 0;
  bool read_only = false;
  bool binlog = false;
  bool log_slave_updates = false;
  bool gtid_strict = false;
  uint64_t gtid_domain = 0;
  /// The last transaction of each domain that it has, "0-1-17,...". While shards come to it from another
  /// master: that are in its binary log.
  std::string gtid;
  /// The last of each server in each domain in its binary log.
  std::string gtid_state;
  bool semi_sync_master = false;  ///< A commit is answered when a slave has it, ...
  bool semi_sync_active = false;  ///< ... and that is so now.
  /// Commits wait also while there is no slave.
  bool semi_sync_wait_no_slave = false;
  uint64_t semi_sync_slaves = 0;
  /// How long a commit waits for a slave before it is answered without.
  uint64_t semi_sync_timeout_ms = 0;
  /// Commits wait before others see what they wrote (wait point AFTER_SYNC), not only before their answer.
  bool semi_sync_hides = false;
  /// How many commits were not acknowledged by a slave since the server, or semi-synchronous replication,
  /// began.
  uint64_t semi_sync_alone = 0;
  bool semi_sync_slave = false;  ///< Answers a master that waits; `active` while it does.
  bool semi_sync_slave_active = false;
  int64_t clock_ahead_ms = 0;  ///< Of this machine's.
  uint64_t max_packet = 0;
  uint64_t connections = 0;
  SlowStatements slow;
  uint64_t uptime_s = 0;
  std::optional<Following> following;
  /// Names of further masters that it follows: shards come from there (Channel).
  std::vector<std::string> channels;
};

/// How many transactions up to `gtid` have not come in at a slave, applied or not.
uint64_t Lacks(const std::string& gtid, const HostState& slave);

/// Databases of shards, those that have moved away ("db00017_moved") too, and the tables in each.
using HostTables = std::map<std::string, std::set<std::string>>;

/// The lock of a server (GET_LOCK) that its operator has (HostAdmin::Claim).
inline constexpr char kOperatorLock[] = "kvstore_operator";

/// A connection of an operator to a host. What fails has the host in its message: UNAVAILABLE, or
/// FAILED_PRECONDITION where rights are missing or the server is none of MariaDB. Externally synchronised.
class HostAdmin {
 public:
  static absl::StatusOr<std::unique_ptr<HostAdmin>> Open(const Host& host, const Access& access);
  /// The same for long work, claimed.
  static absl::StatusOr<std::unique_ptr<HostAdmin>> OpenClaimed(const Host& host, const Access& access);

  const Host& host() const { return host_; }
  /// Keeps other operators from changing this host as long as this lives: who loses the connection can do
  /// nothing more there either. FAILED_PRECONDITION if somebody has it.
  absl::Status Claim();
  /// The number of the connection that has it claimed, which is this one; ABORTED if it is not.
  absl::StatusOr<uint64_t> ClaimNumber();
  absl::StatusOr<HostState> Read();
  absl::StatusOr<HostTables> ReadTables();
  /// All databases but the server's own.
  absl::StatusOr<std::vector<std::string>> ReadDatabases();
  /// Bytes of the files that hold shards; tables of MyRocks are not counted. Slow where there are thousands.
  absl::StatusOr<uint64_t> ReadSize();
  /// Makes the database of an ID shard with the tables of those datasets that are on such; what is there
  /// stays, and what migrates or moves is left alone.
  ///
  /// read  the datasets as they are now; `datasets` as they were a moment ago.
  absl::Status MakeShard(uint32_t shard, uint32_t mod_shards, const std::vector<DatasetSpec>& datasets,
                         const mysql::ReadSpecs& read);

  /// No client can write from now on, nor commit what it has begun. UNAVAILABLE after `wait` if a statement
  /// that runs keeps it from that; then nothing has changed.
  absl::Status StopWrites(std::chrono::seconds wait);
  absl::Status AllowWrites();
  /// Ends the connections that clients have now: all but replication, and this one. How many there were.
  /// Those that come later have seen that the host is read-only.
  absl::StatusOr<uint64_t> EndClients();

  /// Waits until a slave has got all up to this GTID, applied or not; DEADLINE_EXCEEDED if it takes longer.
  absl::Status AwaitReceived(const std::string& gtid, std::chrono::milliseconds wait);
  /// Waits until all up to this GTID is applied; DEADLINE_EXCEEDED if it takes longer.
  absl::Status AwaitGtid(const std::string& gtid, std::chrono::milliseconds wait);
  /// Waits until all that came in is applied.
  absl::Status ApplyAll(std::chrono::milliseconds wait);
  /// Ends following: it is a master, whose commits wait for a slave as soon as it has one. Writes stay as
  /// they are.
  absl::Status Lead();
  /// How commits of a master wait, as in HostState. From here on they do, also if they have not because a
  /// slave was behind or away.
  absl::Status SetSemiSync(bool wait_no_slave, uint64_t timeout_ms);
  /// Has commits of a master be answered without a slave, those that wait now too: its slaves' connections
  /// are ended, also of one that hangs, or whose end the server has not noticed. UNAVAILABLE if they come
  /// again at once.
  absl::Status AnswerAlone();
  /// Follows a master from where this host stands, also after it was a master itself.
  absl::Status Follow(const Host& master, const Access& access);

  /// Calls `work` with the connection; it returns a Status or StatusOr, and may throw what the connector
  /// does.
  template <typename Work>
  auto Do(const Work& work) -> std::invoke_result_t<Work, mysql::Connection&>;

 private:
  HostAdmin(Host host, std::unique_ptr<mysql::Connection> connection)
      : host_(std::move(host)), connection_(std::move(connection)) {}
  absl::Status Tell(const sql::SQLException& error) const;

  const Host host_;
  const std::unique_ptr<mysql::Connection> connection_;
};

/// The names of further masters that a host follows. Throws sql::SQLException, as does the next.
std::vector<std::string> ReadChannels(mysql::Connection& connection);
/// Settings of a server that has a channel (channel.h), but does not follow yet. They hold for whatever else
/// it follows later: EndChannel puts them back.
void PrepareForChannel(mysql::Connection& connection);
/// Ends following one of them. Nothing else may be followed at that moment.
void EndChannel(mysql::Connection& connection, const std::string& name);

/// FAILED_PRECONDITION: what stands in the way, and what to do.
inline absl::Status Refuse(const std::string& text) { return absl::FailedPreconditionError(text); }

/// A text of ours or of an operator's configuration in a statement.
std::string Quoted(std::string_view text);

// ---- implementation ----

template <typename Work>
auto HostAdmin::Do(const Work& work) -> std::invoke_result_t<Work, mysql::Connection&> {
  try {
    return work(*connection_);
  } catch (const sql::SQLException& error) {
    return Tell(error);
  }
}

}  // namespace kvstore::shardops
