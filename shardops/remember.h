#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "shardops/fleet_operator.h"
#include "shardops/notes.h"

/// Records of masters in their notes (notes.h), from which an emergency promotion tells, once the master does
/// not answer any more, whether its slave has all that clients were told of.
namespace kvstore::shardops {

/// How commits of a master wait for its slave.
struct SemiSyncWait {
  bool no_slave = false;    ///< Also while no slave is connected (rpl_semi_sync_master_wait_no_slave).
  uint64_t timeout_ms = 0;  ///< For how long (rpl_semi_sync_master_timeout).
};

/// Returns how commits of a master are to wait once it has a slave again: as its note says, if waiting was
/// suspended (RecordSuspendedWait); else as they wait now.
SemiSyncWait WantedSemiSync(const nlohmann::json& note, const HostState& master);

/// Records the state of a master; and, if the master waits for its slave, up to which transaction that slave
/// has everything. From that transaction on the slave has whatever a client was told of: if the master's log
/// has more at its end, no client was told of it. The slave has everything if it has received what the master
/// had, within a second; or if it had everything in an earlier record, and the master has acknowledged no
/// commit without its slave since.
///
/// slave   The slave of `master`; null if it cannot be asked.
/// before  The note from before the master was asked. FAILED_PRECONDITION, and nothing is recorded, if the
/// note
///         has changed since. If null, the note is replaced whatever it says.
absl::Status RecordMasterState(FleetOperator& fleet, const HostState& master, HostAdmin* slave,
                               const Note* before = nullptr);

/// Records that a master acknowledges commits without its slave from now on. The rest of its note stays.
///
/// gtid    What the master has, as in HostState; empty if that is not known.
/// before  As of RecordMasterState.
absl::Status RecordCommitsWithoutSlave(FleetOperator& fleet, const Host& master, const std::string& gtid = "",
                                       const Note* before = nullptr);

/// Records the same, and how the master's commits are to wait once it has a slave again (WantedSemiSync).
absl::Status RecordSuspendedWait(FleetOperator& fleet, const Host& master, const SemiSyncWait& wanted);

/// Returns why a slave may lack what clients of its master were told of, in words; empty if it has all that
/// was acknowledged.
///
/// seen  The note about its master.
std::string MayLackAcknowledged(const nlohmann::json& seen, const Host& master, const HostState& slave);

/// Databases of the shards of a master, by the maps, that its slave lacks.
struct Lacked {
  std::string text;   ///< How many, and the names of the first, in words; empty if it lacks none.
  bool most = false;  ///< It lacks more than half of them.
};
absl::StatusOr<Lacked> LackedDatabases(FleetOperator& fleet, const Host& master, HostAdmin& slave);

}  // namespace kvstore::shardops
