#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "shardops/notes.h"
#include "shardops/promote.h"

/// What is kept of masters in ZooKeeper for the day when they do not answer any more (notes.h).
namespace kvstore::shardops {

/// How commits of a master wait for its slave: rpl_semi_sync_master_wait_no_slave and _timeout.
struct Waiting {
  bool no_slave = false;  ///< Also while there is none.
  uint64_t timeout_ms = 0;
};

/// How those of a master are to wait once it has a slave again: as is kept of it since it was let go
/// (RememberLetGo), else as they do.
Waiting WantedOf(const nlohmann::json& note, const HostState& master);

/// Keeps what a master says of itself; and, if it waits for its slave, up to which transaction that one has
/// all. From there on the slave has whatever a client was told of: what else is in the master's log at the
/// end, nobody was. That is known if the slave has now, or gets within a second, what the master has; or was
/// known, and it has acknowledged no commit without its slave since.
///
/// slave   Of `master`; null: it cannot be asked.
/// before  What was kept when the master was asked: nothing is kept, FAILED_PRECONDITION, if somebody has
/// kept
///         something since. Null: whatever it is.
absl::Status Remember(Fleet& fleet, const HostState& master, HostAdmin* slave, const Note* before = nullptr);

/// Keeps that a master acknowledges commits without its slave from now on. What else is known of it stays.
///
/// gtid    What it has, as in HostState; empty: not known.
/// before  As above.
absl::Status RememberAlone(Fleet& fleet, const Host& master, const std::string& gtid = "",
                           const Note* before = nullptr);

/// That, and how its commits are to wait once it has a slave again, which holds until they do.
absl::Status RememberLetGo(Fleet& fleet, const Host& master, const Waiting& wanted);

/// Why a slave may lack what clients of its master were told of, in words; empty: it has all that was
/// acknowledged.
///
/// seen   What was kept of its master.
std::string MayLackAcknowledged(const nlohmann::json& seen, const Host& master, const HostState& slave);

/// Databases of the shards that the maps have at a master, and that a slave lacks.
struct Lacked {
  std::string text;   ///< In words, with the first of them; empty: none.
  bool most = false;  ///< More than half of them.
};
absl::StatusOr<Lacked> LackedDatabases(Fleet& fleet, const Host& master, HostAdmin& slave);

}  // namespace kvstore::shardops
