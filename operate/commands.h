#pragma once

#include "shardops/fleet_commands.h"

/// The questions that people ask about the processes of `kv operate`, through a server or by a configuration.
/// All answers are in ZooKeeper, so no host is asked.
namespace kvstore::operate {

/// The commands, for FleetCommands:
///
///   operate_status   {"members": [{"who", "leads", "said_ms"}], "pairs": [{"pair", "on", "by", "since_ms",
///                    "promoted": {"from", "to", "begun_ms", "done"}} or {"pair", "problem"}],
///                    "alarms": [{"subject", "text", "page", "source", "since_ms"}]}. Alarms are those of the
///                    last leader, also while no member leads.
///   operate_journal  {"events": [...]}, each as `operate.journal` has it, oldest first.
///
/// Errors: UNAVAILABLE if ZooKeeper cannot be reached; DATA_LOSS names a node that cannot be read.
const shardops::CommandTable& Commands();

}  // namespace kvstore::operate
