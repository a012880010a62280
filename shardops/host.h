#pragma once

#include <cppconn/exception.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/driver/connection.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "kvstore_api/dataset.h"
#include "shardmap/shard_map.h"
#include "shardops/engine.h"
#include "shardops/host_state.h"
#include "shardops/quoted.h"

/// A host as its operator sees it: its state, its replication, and the few changes that make a slave a
/// master. Replication is the server's own, by GTID, of MariaDB or of MySQL from 8.4 on; both hosts of a pair
/// have the same engine.
namespace kvstore::shardops {

class Dialect;

/// Returns the same logins with a read timeout of a day, for statements that may run for long.
Access WithLongReadTimeout(Access access);

/// Whether two values of HostState::started_s are of the same run of a server.
bool IsSameRun(uint64_t one_started_s, uint64_t other_started_s);

/// Whether replication is broken, so that neither waiting nor following again helps: what arrived cannot be
/// applied, or the slave asks for transactions that its master does not have (error 1236).
bool IsBroken(const Following& following);

/// UNAVAILABLE, with the reason, if what a master commits does not come to its slave now, or is not applied
/// there.
absl::Status CheckReplicates(const Host& slave, const HostState& state, const Host& master);

/// Returns all that a host has, as a position or set: also what it has received as a slave and not applied.
std::string AllOf(const HostState& state);

/// Returns how many transactions up to `gtid` a slave has not received. It need not have applied the others.
uint64_t CountNotReceived(const std::string& gtid, const HostState& slave);

/// The lock of a server (GET_LOCK) that the one operator who changes it holds (HostAdmin::Claim).
inline constexpr char kOperatorLock[] = "kvstore_operator";

/// How long a running statement may prevent that a host is made read-only.
inline constexpr std::chrono::seconds kStopWrites{1};

/// An operator's connection to a host. Every error names the host: UNAVAILABLE if it cannot be reached,
/// FAILED_PRECONDITION if rights are missing, or the server lacks what its operation needs (Dialect::Check).
/// Externally synchronised.
class HostAdmin {
 public:
  static absl::StatusOr<std::unique_ptr<HostAdmin>> Open(const Host& host, const Access& access);
  /// Opens a connection with a long read timeout, and claims the host.
  static absl::StatusOr<std::unique_ptr<HostAdmin>> OpenClaimed(const Host& host, const Access& access);

  const Host& host() const { return host_; }
  Engine engine() const;
  const Words& words() const { return WordsOf(engine()); }
  /// Keeps other operators from changing this host as long as this connection lives. The claim is a lock of
  /// the connection itself: an operator who has lost the claim has lost the connection too, and can change
  /// nothing any more. FAILED_PRECONDITION if another connection has the claim.
  absl::Status Claim();
  /// Claims the host as Claim does, and ends the connection of whoever has the claim: for an emergency, in
  /// which the ledger has taken away the claims of others, one of whom may hang.
  absl::Status TakeClaim();
  /// Returns the ID of this connection if it holds the claim; ABORTED if it does not.
  absl::StatusOr<uint64_t> ClaimConnectionId();
  absl::StatusOr<HostState> Read();
  /// The server walks over all its connections for this. For display only: no change of roles depends on it.
  absl::StatusOr<SlowStatements> ReadSlow();
  absl::StatusOr<HostTables> ReadTables();
  /// Returns all databases but the server's own.
  absl::StatusOr<std::vector<std::string>> ReadDatabases();
  /// Returns the size in bytes of the files that hold shards, without tables of MyRocks. Slow where there are
  /// thousands of tables.
  absl::StatusOr<uint64_t> ReadSize();
  /// Creates the database of an ID shard, with the tables of those datasets that are on ID shards. What
  /// exists stays, and tables of a dataset that migrates or a shard that moves are left alone.
  ///
  /// datasets  The datasets as the caller has read them.
  /// read      Reads them again, so that a dataset that changed since then is noticed.
  absl::Status MakeShard(uint32_t shard, uint32_t mod_shards, const std::vector<DatasetSpec>& datasets,
                         const mysql::ReadSpecs& read);

  /// Makes the host read-only: from then on no client can write, nor commit what it has begun. UNAVAILABLE if
  /// a running statement prevents that for longer than `wait`; nothing has changed then.
  absl::Status StopWrites(std::chrono::seconds wait);
  /// Makes the host take writes, and clients able to connect.
  absl::Status AllowWrites();
  /// Ends all connections that clients have now, but not those of replication, nor this one. Returns how many
  /// there were. Called after StopWrites, so that clients which connect again find the host read-only; those
  /// whose writes were committed before it are told so first, which may take a second.
  absl::StatusOr<uint64_t> EndClients();
  /// The same at once; FAILED_PRECONDITION if one of them cannot be ended.
  absl::StatusOr<uint64_t> EndAllClients();
  /// On MySQL only: lets nobody connect but administrators, and ends all others, until OpenToClients.
  absl::Status CloseToClients();
  absl::Status OpenToClients();

  /// Waits until a slave has received all up to this GTID, whether or not it has applied it;
  /// DEADLINE_EXCEEDED after `wait`.
  absl::Status AwaitReceived(const std::string& gtid, std::chrono::milliseconds wait);
  /// Waits until a slave has applied all up to this GTID; DEADLINE_EXCEEDED after `wait`.
  absl::Status AwaitGtid(const std::string& gtid, std::chrono::milliseconds wait);
  /// Stops receiving, and waits until all that was received is applied. DEADLINE_EXCEEDED after `wait`;
  /// FAILED_PRECONDITION, with what to do, if the slave does not apply.
  absl::Status ApplyAll(std::chrono::milliseconds wait);
  /// Stops replicating and forgets the master. From then on commits wait for a slave whenever one is
  /// connected. Does not change whether the host takes writes.
  absl::Status BecomeMaster();
  /// Sets how commits of a master wait (the fields of HostState). If the master had stopped waiting because
  /// its slave was behind or away, its commits wait again from then on.
  absl::Status SetSemiSync(bool wait_no_slave, uint64_t timeout_ms);
  /// Has commits wait for slaves at all, or not: then those that wait now are let go, too.
  absl::Status EnableSemiSync(bool on);
  /// Makes a master acknowledge commits without a slave, those that are waiting now too: switches
  /// wait_no_slave off, and ends the connections of all slaves, so that a slave which hangs, or whose lost
  /// connection the master has not noticed, is not waited for either. UNAVAILABLE if slaves keep connecting
  /// again.
  absl::Status StopWaitingForSlaves();
  /// Replicates from a master, beginning with what this host lacks; the host may have been a master itself.
  absl::Status Follow(const Host& master, const Access& access);
  /// Stops replicating from the master, and forgets it.
  absl::Status ForgetMaster();

  /// Calls `work` with the connection and returns its Status or StatusOr. `work` may throw sql::SQLException,
  /// which becomes a Status that names the host.
  template <typename Work>
  auto WithConnection(const Work& work) -> std::invoke_result_t<Work, mysql::Connection&>;

 private:
  HostAdmin(Host host, std::unique_ptr<mysql::Connection> connection, const Dialect& dialect)
      : host_(std::move(host)), connection_(std::move(connection)), dialect_(dialect) {}
  absl::Status ToStatus(const sql::SQLException& error) const;

  const Host host_;
  const std::unique_ptr<mysql::Connection> connection_;
  const Dialect& dialect_;
};

/// FAILED_PRECONDITION if two hosts that are to be a pair have different engines: neither can replicate from
/// the other by GTID.
absl::Status CheckSameEngine(const HostAdmin& one, const HostAdmin& other);
/// FAILED_PRECONDITION if a host is not MariaDB.
///
/// what  What is possible on MariaDB only: "a move of shards".
absl::Status CheckIsMariaDb(const Host& host, Engine engine, std::string_view what);

/// Returns FAILED_PRECONDITION. The text says what stands in the way, and what to do.
inline absl::Status Refuse(const std::string& text) { return absl::FailedPreconditionError(text); }

// ---- implementation ----

template <typename Work>
auto HostAdmin::WithConnection(const Work& work) -> std::invoke_result_t<Work, mysql::Connection&> {
  try {
    return work(*connection_);
  } catch (const sql::SQLException& error) {
    return ToStatus(error);
  }
}

}  // namespace kvstore::shardops
