#include "shardops/move_checks.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "shardops/gtid_set.h"
#include "shardops/mysql_replication.h"
#include "shardops/open.h"
#include "shardops/skipped_statements.h"

namespace kvstore::shardops {
namespace {

using mysql::Rows;

/// How long a target may be ahead of its source, which commits a transaction only when its slave has
/// acknowledged it, and how often that is checked.
constexpr std::chrono::seconds kAheadWait{5};
constexpr std::chrono::milliseconds kAheadPoll{100};

absl::StatusOr<HostState> ReadHost(const Host& host, const Access& access) {
  const auto admin = HostAdmin::Open(host, access);
  if (!admin.ok()) return admin.status();
  return (*admin)->Read();
}

/// Returns the gtid_domain_id that both hosts of a pair share, 0 on MySQL; FAILED_PRECONDITION if they do not
/// share one, or the master does not log what it replicates (a channel).
absl::StatusOr<uint64_t> DomainOf(const Pair& pair, const Access& access) {
  const auto master = ReadHost(pair.master, access);
  if (!master.ok()) return master.status();
  const auto slave = ReadHost(pair.slave, access);
  if (!slave.ok()) return slave.status();
  if (!master->log_slave_updates) {
    return Refuse(
        fmt::format("{}: {} is off: set it in its configuration, start it again, then run the command again",
                    pair.master.ToString(),
                    master->engine == Engine::kMariaDb ? "log_slave_updates" : "log_replica_updates"));
  }
  if (master->gtid_domain != slave->gtid_domain) {
    return Refuse(fmt::format("gtid_domain_id: is {} at {}, {} at its slave {}: set it to the same",
                              master->gtid_domain, pair.master.ToString(), slave->gtid_domain,
                              pair.slave.ToString()));
  }
  return master->gtid_domain;
}

/// Checks that a host applies transactions of several domains in the order of the log. Otherwise it could
/// apply what the channel brings before the copy to which that belongs, and what clients write after the move
/// before either.
absl::Status CheckOrderOfMariaDb(const Host& host, mysql::Connection& connection) {
  Rows rows = connection.Ask(
      "SELECT @@slave_parallel_threads, @@slave_parallel_mode FROM DUAL "
      "WHERE @@slave_parallel_threads > 0 AND @@slave_parallel_mode NOT IN ('none', 'minimal')");
  if (!rows.Next()) return absl::OkStatus();
  return Refuse(fmt::format(
      "{}: slave_parallel_mode is {} with slave_parallel_threads = {}: transactions of two domains would "
      "not "
      "be applied in order. 'minimal' has them in order: STOP SLAVE; SET GLOBAL slave_parallel_mode = "
      "'minimal'; START SLAVE, and in its configuration",
      host.ToString(), rows.Bytes(2), rows.Bytes(1)));
}

/// Checks that a host commits what it applies in the order of the log, and that, if it is started again, it
/// throws away what a channel had received: it has forgotten the channel's filter then.
absl::Status CheckApplyingOfMySql(const Host& host, mysql::Connection& connection) {
  Rows rows = connection.Ask(
      "SELECT @@replica_parallel_workers > 1 AND NOT @@replica_preserve_commit_order, @@relay_log_recovery");
  rows.Next();
  if (rows.Uint(1) != 0) {
    return Refuse(fmt::format(
        "{}: replica_preserve_commit_order is OFF: transactions would not be applied in order. STOP REPLICA "
        "SQL_THREAD; SET GLOBAL replica_preserve_commit_order = ON; START REPLICA SQL_THREAD, and in its "
        "configuration",
        host.ToString()));
  }
  if (rows.Uint(2) == 0) {
    return Refuse(
        fmt::format("{}: relay_log_recovery is OFF: set it ON in its configuration, and start it again",
                    host.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckApplying(const Host& host, const Access& access) {
  const auto admin = HostAdmin::Open(host, access);
  if (!admin.ok()) return admin.status();
  return (*admin)->WithConnection([&](mysql::Connection& connection) {
    return (*admin)->engine() == Engine::kMariaDb ? CheckOrderOfMariaDb(host, connection)
                                                  : CheckApplyingOfMySql(host, connection);
  });
}

/// Checks that a MySQL master logs rows, which a filter leaves out by their tables, and that what it has sent
/// is in its log after a power failure, too: else it would give the same GTIDs to other transactions, which
/// the copy would leave out.
absl::Status CheckLog(HostAdmin& host) {
  return host.WithConnection([&](mysql::Connection& connection) -> absl::Status {
    Rows rows = connection.Ask(
        "SELECT @@GLOBAL.binlog_format, @@GLOBAL.sync_binlog, @@GLOBAL.innodb_flush_log_at_trx_commit");
    rows.Next();
    if (rows.Bytes(1) != "ROW") {
      return Refuse(fmt::format(
          "{}: binlog_format is {}: shards are copied by rows. SET GLOBAL binlog_format = ROW, and in its "
          "configuration",
          host.host().ToString(), rows.Bytes(1)));
    }
    if (rows.Uint(2) == 1 && rows.Uint(3) == 1) return absl::OkStatus();
    return Refuse(fmt::format(
        "{}: sync_binlog is {}, and innodb_flush_log_at_trx_commit {}: after a power failure it would lack "
        "what copies have of it already. SET GLOBAL sync_binlog = 1, innodb_flush_log_at_trx_commit = 1, and "
        "in its configuration",
        host.host().ToString(), rows.Bytes(2), rows.Bytes(3)));
  });
}

/// Whether one version, "9.7.4-2", is of an older series (9.7) than the other.
bool IsOlder(const std::string& one, const std::string& other) {
  const auto series = [](const std::string& version) {
    const size_t dot = version.find('.');
    return std::pair(std::stoi(version), dot == std::string::npos ? 0 : std::stoi(version.substr(dot + 1)));
  };
  return series(one) < series(other);
}

/// Checks what is to be so between the pairs of MySQL servers.
absl::Status CheckMySql(const Pair& from, const Pair& to, const Access& access) {
  const auto source = HostAdmin::Open(from.master, access);
  if (!source.ok()) return source.status();
  if (auto status = CheckLog(**source); !status.ok()) return status;
  const auto here = (*source)->Read();
  if (!here.ok()) return here.status();
  for (const Host& host : {to.master, to.slave}) {
    const auto there = ReadHost(host, access);
    if (!there.ok()) return there.status();
    if (IsOlder(there->version, here->version)) {
      return Refuse(fmt::format(
          "{} is of version {}, and {} of {}: a MySQL server replicates from one of its own or an older "
          "version only",
          host.ToString(), there->version, from.master.ToString(), here->version));
    }
    // The source would take its acknowledgement of a commit for that of its own slave.
    if (host == to.master && there->semi_sync_slave) {
      return Refuse(
          fmt::format("{}: is a master, and rpl_semi_sync_replica_enabled is ON: SET GLOBAL "
                      "rpl_semi_sync_replica_enabled = OFF there",
                      host.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMoveHosts(FleetOperator& fleet, const Pair& from, const Pair& to) {
  const auto source = HostAdmin::Open(from.master, fleet.access);
  const auto target = HostAdmin::Open(to.master, fleet.access);
  if (source.ok() && target.ok() && (*source)->engine() != (*target)->engine()) {
    return Refuse(fmt::format(
        "{} is a {} server and {} a {} server: shards move between pairs of the same engine only; "
        "datasets migrate from one to the other. Nothing has changed",
        from.master.ToString(), (*source)->words().engine, to.master.ToString(), (*target)->words().engine));
  }
  for (const Pair& pair : {from, to}) {
    if (const auto problems = FindPairProblems(fleet, pair); !problems.empty()) {
      return Refuse(fmt::format("{}", fmt::join(problems, "\n")));
    }
  }
  for (const Host& host : {to.master, to.slave}) {
    if (auto status = CheckApplying(host, fleet.access); !status.ok()) return status;
  }
  const auto here = DomainOf(from, fleet.access);
  if (!here.ok()) return here.status();
  const auto there = DomainOf(to, fleet.access);
  if (!there.ok()) return there.status();
  if (!source.ok()) return source.status();
  if ((*source)->engine() == Engine::kMySql) return CheckMySql(from, to, fleet.access);
  if (*here == *there) {
    return Refuse(fmt::format(
        "gtid_domain_id: is {} at both {} and {}; each pair needs one of its own, the same on its "
        "two hosts: SET GLOBAL gtid_domain_id, and in their configuration",
        *here, from.master.ToString(), to.master.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckNothingAhead(HostAdmin& source, HostAdmin& target, const Pair& from, bool copied) {
  if (source.engine() == Engine::kMariaDb) return absl::OkStatus();
  // The target is asked once, and first: what it had then, the source, whose set only grows, has or will
  // have.
  const auto there = target.Read();
  if (!there.ok()) return there.status();
  const auto deadline = std::chrono::steady_clock::now() + kAheadWait;
  for (;;) {
    const auto ahead = source.WithConnection([&](mysql::Connection& connection) -> absl::StatusOr<uint64_t> {
      Rows rows = connection.Ask("SELECT @@server_uuid, @@GLOBAL.gtid_executed");
      rows.Next();
      return GtidSet(there->gtid).OfServer(rows.Bytes(1), kSkippedTag).CountMissingIn(GtidSet(rows.Bytes(2)));
    });
    if (!ahead.ok()) return ahead.status();
    if (*ahead == 0) return absl::OkStatus();
    if (std::chrono::steady_clock::now() >= deadline) {
      return Refuse(fmt::format(
          "{0}: has {1} transactions that began on {2}, and that {2} has not committed. Either they wait for "
          "its slave: kv shards status tells whether that replicates; if they do, run the command again "
          "later. Or {2} died before its slave had them: it would give their GTIDs to others, which {0} "
          "would leave out. Then {4}move the shards from {3}: kv shards promote {3}, and kv shards move",
          target.host().ToString(), *ahead, source.host().ToString(), from.slave.ToString(),
          copied ? "give up this copy by kv shards move cancel, and " : ""));
    }
    std::this_thread::sleep_for(kAheadPoll);
  }
}

}  // namespace kvstore::shardops
