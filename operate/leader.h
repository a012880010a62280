#pragma once

#include <cstdint>
#include <functional>

#include "operate/journal.h"
#include "operate/membership.h"
#include "operate/options.h"
#include "operate/pair_records.h"
#include "shardops/fleet_operator.h"

namespace kvstore::operate {

/// The objects that the leader gives to the parts that act, for one look at the fleet. All must outlive it.
struct Leader {
  /// Its ledger begins nothing once another process leads.
  shardops::FleetOperator& fleet;
  PairRecords& pairs;
  Journal& journal;
  const OperateOptions& options;
  const Meeting& meeting;
  /// Whether it only says what it would do.
  bool dry_run = false;
  /// When the masters were asked, by a clock that goes on while the machine sleeps (BootClockMs).
  uint64_t looked_ms = 0;
  /// To be called every few seconds during steps that take long: keeps the leadership, and this process
  /// ready.
  std::function<void()> is_busy;
};

/// Milliseconds of a clock that nobody sets, and that goes on while this process or its machine is stopped.
uint64_t BootClockMs();

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
