#include "shardops/promote.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/fail_point.h"
#include "shardops/map_history.h"
#include "shardops/move_record.h"
#include "shardops/notes.h"
#include "shardops/promoter.h"
#include "shardops/stop_clients.h"

namespace kvstore::shardops {
namespace {

/// How often a host that is being fenced is made read-only again if it takes writes all the same.
constexpr int kFenceAttempts = 3;

/// Claims both hosts of the pair in the ledger. A promotion that only completes what the maps say already may
/// run beside a move of shards. Returns an empty operation for a dry run.
absl::StatusOr<Held> BeginPromotion(FleetOperator& fleet, const Host& host, const PromotionPlan& plan,
                                    const PromoteOptions& options) {
  if (options.dry_run) return Held();
  const ClaimMode mode = plan.published ? ClaimMode::kUpdate : ClaimMode::kExclusive;
  Operation operation{
      .what = fmt::format("promote {}{}", host.ToString(), options.emergency ? " --emergency" : "")};
  for (const Host& one : {plan.before.master, plan.before.slave}) {
    operation.claims.push_back(Claim::Host(one.ToString(), mode));
  }
  return options.emergency ? fleet.ledger->BeginOver(std::move(operation))
                           : fleet.ledger->Begin(std::move(operation));
}

/// FAILED_PRECONDITION if the maps do not say any more what they said when the promotion was planned.
absl::Status CheckPlan(FleetOperator& fleet, const Host& host, const PromotionPlan& plan) {
  if (auto status = fleet.zookeeper.Sync(fleet.root); !status.ok()) return status;
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  const auto now = PlanPromotion(*maps, host);
  if (!now.ok()) return now.status();
  if (now->before == plan.before && now->published == plan.published) return absl::OkStatus();
  return Refuse(
      fmt::format("the shard map has changed meanwhile: {} is the {} of the pair now: run the command "
                  "again if it is still to lead",
                  host.ToString(), now->published ? "master" : "slave"));
}

}  // namespace

absl::StatusOr<Promotion> Promote(FleetOperator& fleet, const Host& host, const PromoteOptions& options) {
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  auto plan = PlanPromotion(*maps, host);
  if (!plan.ok()) return plan.status();
  if (!plan->published && !options.emergency) {
    const auto moves = LoadMoves(fleet);
    if (!moves.ok()) return moves.status();
    if (auto status = moves->CheckPair(*maps, plan->before); !status.ok()) return status;
    if (const MoveRecord* const move = FindMove(moves->known, plan->before); move != nullptr) {
      return Refuse(
          fmt::format("{} is in the move of shards {}: let that end, or cancel it (kv shards move cancel)",
                      host.ToString(), move->range.ToString()));
    }
  }
  if (options.only_complete && !plan->published) {
    return Refuse(fmt::format("{}: is not the master by the maps", host.ToString()));
  }
  auto held = BeginPromotion(fleet, host, *plan, options);
  if (!held.ok()) return held.status();
  if (!options.dry_run) {
    // Another promotion may have ended before this one was begun.
    if (auto status = CheckPlan(fleet, host, *plan); !status.ok()) return status;
  }
  // A promotion must be possible also where the history cannot be written.
  if (!options.dry_run) PrepareHistory(fleet.zookeeper, fleet.root).IgnoreError();
  return Promoter(fleet, options, *std::move(plan), *std::move(held)).Run();
}

absl::StatusOr<uint64_t> Fence(FleetOperator& fleet, const Host& host) {
  auto admin = HostAdmin::Open(host, fleet.access);
  if (!admin.ok()) return admin.status();
  uint64_t all = 0;
  for (int attempt = 1;; ++attempt) {
    const auto ended = StopClients(**admin);
    if (!ended.ok()) return ended.status();
    all += *ended;
    Reached("fence.stopped");
    // Whoever was about to open the host has lost it from here on; and who claims it later reads the note.
    const absl::Status claimed = (*admin)->TakeClaim();
    // This comes after the fence: until then an inspection may find that the host takes writes.
    if (auto status = RecordFenced(fleet, host); !status.ok()) {
      fleet.report(
          fmt::format("{}: that it was fenced cannot be written down, so kv operate may open it when it is "
                      "started again: {}",
                      host.ToString(), std::string(status.message())));
      return all;
    }
    if (!claimed.ok()) {
      return absl::Status(claimed.code(), fmt::format("{} takes no writes, but may be opened again: {}",
                                                      host.ToString(), std::string(claimed.message())));
    }
    // It may have been opened before it was claimed.
    const auto state = (*admin)->Read();
    if (!state.ok()) return state.status();
    if (state->read_only) return all;
    if (attempt == kFenceAttempts) {
      return absl::AbortedError(host.ToString() + ": somebody makes it take writes again and again");
    }
  }
}

absl::StatusOr<uint64_t> FenceSlave(FleetOperator& fleet, const Pair& pair) {
  const auto held =
      fleet.ledger->Begin({.what = "fence " + pair.slave.ToString(),
                           .claims = {Claim::Host(pair.slave.ToString(), ClaimMode::kExclusive)}});
  if (!held.ok()) return held.status();
  const auto admin = HostAdmin::Open(pair.slave, fleet.access);
  if (!admin.ok()) return admin.status();
  if (auto status = (*admin)->Claim(); !status.ok()) return status;
  if (auto status = held->Check(); !status.ok()) return status;
  if (auto status = CheckPlan(fleet, pair.slave, {.before = pair, .published = false}); !status.ok()) {
    return status;
  }
  return StopClients(**admin);
}

}  // namespace kvstore::shardops
