#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operate/journal.h"
#include "operate/membership.h"
#include "operate/options.h"
#include "operate/pair_records.h"
#include "shardops/fleet_operator.h"

namespace kvstore::operate {

/// What the parts that act get from the leader, for one look at the fleet. All must outlive the call.
struct Leader {
  /// Its ledger begins nothing once another process leads.
  shardops::FleetOperator& fleet;
  PairRecords& pairs;
  Journal& journal;
  const OperateOptions& options;
  const Meeting& meeting;
  /// Whether it only says what it would do.
  bool dry_run = false;
};

/// The heading of the runbook for each alarm.
namespace page {
inline constexpr char kMaster[] = "runbook.md#a-master-does-not-answer";
inline constexpr char kReplaced[] = "runbook.md#kv-operate-has-replaced-a-master";
inline constexpr char kHost[] = "runbook.md#alarms-of-kv-operate";
inline constexpr char kMap[] = "runbook.md#the-shard-map-is-nearly-full";
inline constexpr char kIds[] = "runbook.md#the-local-ids-of-a-table-run-out";
inline constexpr char kDisk[] = "runbook.md#a-pair-is-full-or-busy-some-of-its-shards-move";
inline constexpr char kZooKeeper[] = "runbook.md#zookeeper-is-away";
}  // namespace page

}  // namespace kvstore::operate
