#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "shardops/promote.h"

/// What is kept of masters in ZooKeeper for the day when they do not answer any more (notes.h).
namespace kvstore::shardops {

/// Keeps what a master says of itself; and, if it waits for its slave, up to which transaction that one has
/// all. From there on the slave has whatever a client was told of: what else is in the master's log at the
/// end, nobody was. That is known if the slave has now, or gets within a second, what the master has; or was
/// known, and no commit was answered alone since.
///
/// slave  Of `master`; null: it cannot be asked.
absl::Status Remember(Fleet& fleet, const HostState& master, HostAdmin* slave);

/// Keeps that a master answers without its slave from now on. What else is known of it stays.
///
/// gtid  What it has, as in HostState; empty: not known.
absl::Status RememberAlone(Fleet& fleet, const Host& master, const std::string& gtid = "");

/// Why a slave may lack what clients of its master were told of, in words; empty: it has all that was
/// acknowledged.
///
/// seen   What was kept of its master.
/// lacks  It lacks transactions that its master was seen to have.
std::string MayLackAcknowledged(const nlohmann::json& seen, const Host& master, const HostState& slave,
                                bool lacks);

/// Databases of the shards that the maps have at a master, and that a slave lacks.
struct Lacked {
  std::string text;   ///< In words, with the first of them; empty: none.
  bool most = false;  ///< More than half of them.
};
absl::StatusOr<Lacked> LackedDatabases(Fleet& fleet, const Host& master, HostAdmin& slave);

}  // namespace kvstore::shardops
