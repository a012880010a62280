#include "shardops/promote.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/fail_point.h"
#include "shardops/gtid.h"
#include "shardops/map_history.h"
#include "shardops/move_record.h"
#include "shardops/notes.h"
#include "shardops/remember.h"

namespace kvstore::shardops {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;

/// How long a statement that runs may keep a master from being made read-only.
constexpr std::chrono::seconds kStopWrites{1};
/// How often that is tried.
constexpr int kAttempts = 3;
/// How often somebody else may change a map before this one has.
constexpr int kMaxConflicts = 10;
/// How long a master may count a slave whose connection has ended.
constexpr std::chrono::seconds kNoticed{1};
/// A slave that is further behind is let catch up before clients have to wait.
constexpr uint64_t kMaxLag = 2;

/// What is to be done, from the maps alone.
struct Plan {
  Pair before;             ///< As the maps have it.
  bool published = false;  ///< The host is the master of the pair already.
};

absl::StatusOr<Plan> PlanOf(const Maps& maps, const Host& host) {
  std::vector<Pair> as_slave;
  std::vector<Pair> as_master;
  for (const Pair& pair : maps.Pairs()) {
    if (pair.slave == host) as_slave.push_back(pair);
    if (pair.master == host) as_master.push_back(pair);
  }
  if (as_slave.size() + as_master.size() == 0) {
    return Refuse(fmt::format("host: {} is in no shard map: kv shards status lists the hosts that are",
                              host.ToString()));
  }
  if (as_slave.size() + as_master.size() > 1) {
    return Refuse(
        fmt::format("host: {} is in more than one pair of the shard maps: one of them is wrong. kv shards "
                    "status says which "
                    "pairs, kv shards undo puts the map of before in force again",
                    host.ToString()));
  }
  if (as_slave.empty()) return Plan{as_master.front(), true};
  return Plan{as_slave.front(), false};
}

/// The promotion of one host.
class Promoter {
 public:
  /// held  in the ledger; of a dry run nothing.
  Promoter(Fleet& fleet, const PromoteOptions& options, Plan plan, Held held)
      : fleet_(fleet), options_(options), plan_(std::move(plan)), held_(std::move(held)) {}

  absl::StatusOr<Promotion> Run();

 private:
  const Host& host() const { return plan_.published ? plan_.before.master : plan_.before.slave; }
  const Host& other() const { return plan_.published ? plan_.before.slave : plan_.before.master; }

  /// The map names it: what is left is done, if anything is.
  absl::StatusOr<Promotion> Complete();
  absl::StatusOr<Promotion> Planned();
  absl::StatusOr<Promotion> Emergency();
  /// The slave could be a master, and follows the right one or nobody.
  absl::Status CheckSlave(const HostState& slave) const;
  /// The host, which has applied all that it has, has a database of each of the pair's shards; or lacks less
  /// than half of them, and a loss is accepted.
  absl::Status CheckWhole(HostAdmin& slave) const;
  /// What may be lost, in words; empty: nothing.
  std::string MayLose(const HostState& slave, uint64_t* at_least);
  absl::Status Publish();
  /// The slave, which has all, leads, the maps name it, and it takes writes. Stopped in between it goes on by
  /// another Promote; before the maps have changed also back.
  absl::Status TakeOver(HostAdmin& slave);
  /// The other host follows this one, if it can.
  ///
  /// follows  It does, as far as is known, and only has to get in step.
  bool Attach(HostAdmin& master, bool follows);

  Fleet& fleet_;
  const PromoteOptions& options_;
  const Plan plan_;
  const Held held_;
};

/// Of a pair: both hosts. What only has to come in order again may be done while shards move there.
absl::StatusOr<Held> BeginPromotion(Fleet& fleet, const Host& host, const Plan& plan,
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

absl::StatusOr<Promotion> Promoter::Run() {
  if (auto status = CheckCopyEnded(fleet_, host()); !status.ok()) {
    std::string more;
    if (plan_.published) {
      more = fmt::format("\nThe map names it the master: kv shards promote {} makes that the master first",
                         other().ToString());
    } else if (options_.emergency) {
      more = fmt::format("\nThat needs {0}: bring it back, kv shards promote {0} opens it again",
                         other().ToString());
    }
    return absl::Status(status.code(), std::string(status.message()) + more);
  }
  if (plan_.published) return Complete();
  return options_.emergency ? Emergency() : Planned();
}

absl::Status Promoter::CheckSlave(const HostState& slave) const {
  const std::string name = slave.host.ToString();
  if (!slave.binlog || !slave.gtid_strict) {
    return Refuse(name +
                  ": a master needs log_bin and gtid_strict_mode: set both in its configuration, start it "
                  "again, then run the command again");
  }
  if (!slave.following) {
    // A promotion that was interrupted went so far.
    if (slave.read_only) return absl::OkStatus();
    return Refuse(
        fmt::format("{0}: follows nobody and takes writes: it is no slave of {1}. kv shards fence {0}, then "
                    "kv shards replace-slave {0} --discard makes it one",
                    name, other().ToString()));
  }
  if (slave.following->master != other()) {
    return Refuse(
        fmt::format("{0}: follows {1}, the map says {2}: kv shards replace-slave {0} --discard makes it a "
                    "slave of that one",
                    name, slave.following->master.ToString(), other().ToString()));
  }
  if (!slave.read_only)
    return Refuse(name + ": is a slave that takes writes: kv shards fence " + name + " makes it read-only");
  if (!slave.following->applies) {
    return Refuse(fmt::format(
        "{0}: does not apply what comes from its master: {1}\nMend that, and START SLAVE SQL_THREAD there "
        "(nothing else while the master is away: what has come in and is not applied would be thrown "
        "away); or, while the master lives, kv shards replace-slave {0} --discard makes it new",
        name, slave.following->error));
  }
  return absl::OkStatus();
}

absl::StatusOr<Promotion> Promoter::Planned() {
  auto master = HostAdmin::Open(other(), fleet_.access);
  if (absl::IsUnavailable(master.status())) {
    return absl::UnavailableError(fmt::format("{}\nIf it is gone for good: kv shards promote {} --emergency",
                                              std::string(master.status().message()), host().ToString()));
  }
  if (!master.ok()) return master.status();
  auto slave = HostAdmin::Open(host(), fleet_.access);
  if (!slave.ok()) return slave.status();
  for (HostAdmin* const admin : {master->get(), slave->get()}) {
    if (auto status = admin->Claim(); !status.ok()) return status;
  }
  const auto was = (*master)->Read();
  if (!was.ok()) return was.status();
  const auto is = (*slave)->Read();
  if (!is.ok()) return is.status();
  if (auto status = CheckSlave(*is); !status.ok()) return status;
  if (is->following) {
    if (!is->following->receives) {
      return Refuse(
          fmt::format("{0}: is not connected to its master: {1}\nkv shards promote {2} has it follow again",
                      host().ToString(), is->following->error, other().ToString()));
    }
    if (is->following->lag_s.value_or(UINT64_MAX) > kMaxLag) {
      return Refuse(fmt::format(
          "{}: is {} s behind; clients would wait for it: run the command again when kv shards status shows "
          "less",
          host().ToString(), is->following->lag_s ? std::to_string(*is->following->lag_s) : "unknown"));
    }
  }
  if (was->following) {
    return Refuse(
        fmt::format("{0}: is a master by the map, and follows {1}: if it is to lead, STOP SLAVE; RESET SLAVE "
                    "ALL there, then kv shards promote {0}",
                    other().ToString(), was->following->master.ToString()));
  }
  Promotion promotion{.before = plan_.before, .after = {host(), other()}};
  if (options_.dry_run) {
    fleet_.tell(fmt::format("{} would stop taking writes, {} apply the rest and take its place",
                            other().ToString(), host().ToString()));
    return promotion;
  }
  if (auto status = Remember(fleet_, *was, slave->get()); !status.ok()) return status;
  // As a master it begins without a slave: whatever is known of an earlier time does not hold. Its commits
  // are to wait as they did there.
  const Waiting wanted = WantedOf(ReadNote(fleet_, other()), *was);
  if (auto status = RememberLetGo(fleet_, host(), wanted); !status.ok()) return status;
  Reached("promote.begin");

  auto begin = Clock::now();
  const auto go_back = [&](absl::Status why) {
    if (auto status = (*master)->AllowWrites(); !status.ok()) {
      return absl::Status(why.code(),
                          fmt::format("{}; and {} could not be opened again: {}", std::string(why.message()),
                                      other().ToString(), std::string(status.message())));
    }
    return why;
  };
  for (int attempt = 1;; ++attempt) {
    begin = Clock::now();
    const absl::Status status = (*master)->StopWrites(kStopWrites);
    if (status.ok()) break;
    // Clients go on in between, and what was in the way may have ended.
    if (!absl::IsUnavailable(status) || attempt == kAttempts) return status;
  }
  Reached("promote.stopped");
  const auto ended = (*master)->EndClients();
  if (!ended.ok()) return go_back(ended.status());
  fleet_.tell(fmt::format("{} takes no more writes, {} connections were ended", other().ToString(), *ended));
  Reached("promote.fenced");
  const auto last = (*master)->Read();
  if (!last.ok()) return go_back(last.status());
  if (auto status = (*slave)->AwaitGtid(last->gtid, options_.catch_up); !status.ok()) return go_back(status);
  fleet_.tell(fmt::format("{} has all: {}", host().ToString(), last->gtid));
  Reached("promote.applied");
  if (auto status = TakeOver(**slave); !status.ok()) return status;
  promotion.write_pause_ms =
      static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count());
  fleet_.tell(fmt::format("{} takes writes, {} ms later", host().ToString(), promotion.write_pause_ms));
  Reached("promote.opened");
  promotion.follows = Attach(**slave, /*follows=*/false);
  Reached("promote.attached");
  return promotion;
}

std::string Promoter::MayLose(const HostState& slave, uint64_t* at_least) {
  // A promotion that was stopped has looked, and cut it off; nothing has come in since, and nothing of what
  // had, and was not applied, was thrown away: a server that starts, or a thread that does, begins anew.
  const Json looked = ReadNote(fleet_, host());
  const Json seen = ReadNote(fleet_, other());
  if (looked.value("promoted_from", "") == other().ToString() &&
      looked.value("at_ms", uint64_t{0}) >= seen.value("at_ms", uint64_t{0}) &&
      Missing(slave.gtid, looked.value("gtid", "")) == 0 && Lacks(looked.value("gtid", ""), slave) == 0) {
    *at_least = 0;
    return "";
  }
  *at_least = Lacks(seen.value("gtid", ""), slave);
  const std::string doubt = MayLackAcknowledged(seen, other(), slave);
  if (*at_least == 0) return doubt;
  const std::string lacks = fmt::format("it lacks {} transactions that {} had at {}", *at_least,
                                        other().ToString(), seen.value("at_ms", uint64_t{0}));
  if (!doubt.empty()) return fmt::format("{}; {}", lacks, doubt);
  fleet_.tell(fmt::format(
      "{}: {}, which no client was told of, because {} answers a commit only when its slave has it "
      "(rpl_semi_sync_master_wait_no_slave), and the slave has all that it was seen to have before those. {}",
      host().ToString(), lacks, other().ToString(),
      seen.value("hides", false)
          ? "Nor has any client read what they wrote (rpl_semi_sync_master_wait_point is AFTER_SYNC)"
          : "But clients may have read what they wrote, which is gone: rpl_semi_sync_master_wait_point is "
            "AFTER_COMMIT there; set it to AFTER_SYNC"));
  *at_least = 0;
  return "";
}

absl::Status Promoter::CheckWhole(HostAdmin& slave) const {
  const auto lacks = LackedDatabases(fleet_, plan_.before.master, slave);
  if (!lacks.ok()) return lacks.status();
  if (lacks->text.empty()) return absl::OkStatus();
  const std::string back = fmt::format("{0}. Bring {1} back: kv shards promote {1} opens it again",
                                       lacks->text, other().ToString());
  if (lacks->most) return Refuse(back + ". Most would be lost: this is a copy that was never finished");
  if (!options_.accept_loss) {
    return Refuse(
        fmt::format("{}. Else, to lose what they have: kv shards promote {} --emergency --accept-loss 0",
                    back, host().ToString()));
  }
  fleet_.tell(lacks->text + "; accepted");
  return absl::OkStatus();
}

absl::StatusOr<Promotion> Promoter::Emergency() {
  if (const auto master = HostAdmin::Open(other(), fleet_.access); !absl::IsUnavailable(master.status())) {
    return Refuse(fmt::format("{} answers: leave --emergency away", other().ToString()));
  }
  auto slave = HostAdmin::Open(host(), fleet_.access);
  if (!slave.ok()) return slave.status();
  if (auto status = (*slave)->Claim(); !status.ok()) return status;
  const auto is = (*slave)->Read();
  if (!is.ok()) return is.status();
  if (auto status = CheckSlave(*is); !status.ok()) return status;
  uint64_t at_least = 0;
  const std::string loss = MayLose(*is, &at_least);
  if (!loss.empty()) {
    if (!options_.accept_loss || *options_.accept_loss < at_least) {
      return Refuse(
          fmt::format("{0}: {1}. Bring {3} back if you can: kv shards promote {3} opens it again. Else, to "
                      "lose that: kv shards promote {0} --emergency --accept-loss {2}",
                      host().ToString(), loss, at_least, other().ToString()));
    }
    fleet_.tell(fmt::format("{}: {}; accepted", host().ToString(), loss));
  }
  Promotion promotion{.before = plan_.before, .after = {host(), other()}};
  const bool more = is->following && Missing(is->following->received, is->gtid) > 0;
  if (options_.dry_run) {
    // What is not applied yet may have them.
    if (auto status = more ? absl::OkStatus() : CheckWhole(**slave); !status.ok()) return status;
    fleet_.tell(fmt::format("{} would apply what it has, and take the place of {}", host().ToString(),
                            other().ToString()));
    return promotion;
  }
  // Whoever finds it cut off, or following nobody, knows from this that it was looked at.
  Json looked = {{"promoted_from", other().ToString()},
                 {"gtid", more ? is->following->received : is->gtid},
                 {"at_ms", WallClockMs()}};
  // Its commits are to wait as they did there.
  if (const Json seen = ReadNote(fleet_, other()); seen.contains("wait_no_slave")) {
    looked.update({{"let_go", true},
                   {"wait_no_slave", seen["wait_no_slave"]},
                   {"timeout_ms", seen.value("timeout_ms", uint64_t{0})}});
  }
  if (auto status = WriteNote(fleet_, host(), looked); !status.ok()) return status;
  Reached("promote.begin");
  if (is->following) {
    if (auto status = (*slave)->ApplyAll(options_.catch_up); !status.ok()) return status;
  }
  if (auto status = CheckWhole(**slave); !status.ok()) return status;
  Reached("promote.applied");
  if (auto status = TakeOver(**slave); !status.ok()) return status;
  fleet_.tell(fmt::format(
      "{0} takes writes. {1} must not: it comes back read-only if it is configured so, else run kv "
      "shards fence {1} before clients reach it",
      host().ToString(), other().ToString()));
  Reached("promote.opened");
  return promotion;
}

absl::StatusOr<Promotion> Promoter::Complete() {
  auto master = HostAdmin::Open(host(), fleet_.access);
  if (!master.ok()) return master.status();
  Promotion promotion{.before = plan_.before, .after = plan_.before};
  const auto slave = HostAdmin::Open(other(), fleet_.access);
  if (!slave.ok() && !absl::IsUnavailable(slave.status())) return slave.status();
  if (auto status = (*master)->Claim(); !status.ok()) return status;
  if (slave.ok()) {
    if (auto status = (*slave)->Claim(); !status.ok()) return status;
  }
  // First the slave: meanwhile the master goes on.
  std::optional<HostState> there;
  if (slave.ok()) {
    auto state = (*slave)->Read();
    if (!state.ok()) return state.status();
    there = *std::move(state);
  }
  const auto is = (*master)->Read();
  if (!is.ok()) return is.status();
  bool unusable = false;
  if (auto status = CheckCopyEnded(fleet_, other()); absl::IsFailedPrecondition(status)) {
    fleet_.tell(std::string(status.message()));
    unusable = true;
  } else if (!status.ok()) {
    return status;
  }
  if (there) {
    if (!there->read_only) {
      return Refuse(fmt::format("{} takes writes too, the map says that {} is the master: kv shards fence {}",
                                other().ToString(), host().ToString(), other().ToString()));
    }
    promotion.follows = !unusable && there->following && there->following->master == host();
    const uint64_t more = Beyond(there->gtid_state, is->gtid_state, /*unknown=*/false);
    if (more > 0 && !unusable) {
      if (Beyond(is->gtid_state, there->gtid_state, /*unknown=*/true) == 0) {
        return Refuse(fmt::format("{} has {} transactions that {} lacks: kv shards promote {}",
                                  other().ToString(), more, host().ToString(), other().ToString()));
      }
      // A master that died may have begun what its slave never got, and nobody was told of.
      fleet_.tell(
          fmt::format("{} has {} transactions that {} never had, so it cannot follow: kv shards "
                      "replace-slave {} --discard makes it new",
                      other().ToString(), more, host().ToString(), other().ToString()));
      unusable = true;
    }
  }
  if (is->following) {
    return Refuse(
        fmt::format("{0}: is the master by the map, and follows {1}: STOP SLAVE; RESET SLAVE ALL there, then "
                    "kv shards promote {0}",
                    host().ToString(), is->following->master.ToString()));
  }
  if (options_.dry_run) return promotion;
  if (ReadNote(fleet_, other()).value("promoted_from", "") == host().ToString()) {
    // An emergency was given up, which had cut it off: what was found then does not hold from here on.
    if (auto status = WriteNote(fleet_, other(), Json::object()); !status.ok()) return status;
    promotion.follows = false;
  }
  if (is->read_only) {
    // It may have been started again as a slave that nobody waits for, and answers without one until it has
    // one: nobody may think of what was seen before that it holds.
    const Waiting wanted = WantedOf(ReadNote(fleet_, host()), *is);
    if (auto status = RememberLetGo(fleet_, host(), wanted); !status.ok()) return status;
    if (auto status = (*master)->Lead(); !status.ok()) return status;
    if (auto status = (*master)->AllowWrites(); !status.ok()) return status;
    fleet_.tell(host().ToString() + " takes writes");
  }
  Reached("promote.opened");
  if (slave.ok() && !unusable) promotion.follows = Attach(**master, promotion.follows);
  return promotion;
}

bool Promoter::Attach(HostAdmin& master, bool follows) {
  const auto attach = [&]() -> absl::Status {
    auto slave = HostAdmin::Open(other(), fleet_.access);
    if (!slave.ok()) return slave.status();
    if (!follows) {
      if (auto status = (*slave)->Follow(host(), fleet_.access); !status.ok()) return status;
      // Those that came meanwhile have an old map.
      if (const auto ended = (*slave)->EndClients(); !ended.ok()) return ended.status();
    }
    const auto deadline = Clock::now() + options_.catch_up;
    std::optional<Clock::time_point> active_since;
    for (;;) {
      const auto state = master.Read();
      if (!state.ok()) return state.status();
      const auto there = (*slave)->Read();
      if (!there.ok()) return there.status();
      // Who has lost its master for a moment tries again by itself.
      const bool tries = there->following && there->following->applies && there->following->reconnects;
      if (there->following && !there->following->error.empty() && (!tries || Clock::now() >= deadline)) {
        return Refuse(there->following->error);
      }
      if (!state->semi_sync_master) {
        return Refuse(host().ToString() +
                      " acknowledges commits without its slave: SET GLOBAL rpl_semi_sync_master_enabled = ON "
                      "there, then "
                      "run the command again");
      }
      // Only when it has what there is: else commits would wait for all of that.
      if (state->semi_sync_slaves > 0 && Lacks(state->gtid, *there) == 0) {
        const Waiting wanted = WantedOf(ReadNote(fleet_, host()), *state);
        absl::Status status = master.SetSemiSync(wanted.no_slave, wanted.timeout_ms);
        if (!status.ok()) return status;
        const auto now = master.Read();
        if (!now.ok()) return now.status();
        // The end of an earlier connection may not have been noticed yet; or there is another slave.
        if (now->semi_sync_active && !active_since) active_since = Clock::now();
        const bool sure =
            active_since && (now->semi_sync_slaves == 1 || Clock::now() >= *active_since + kNoticed);
        if (now->semi_sync_active && sure) return Remember(fleet_, *now, slave->get());
      }
      if (Clock::now() >= deadline)
        return absl::DeadlineExceededError("it does not connect to its new master");
      std::this_thread::sleep_for(milliseconds(20));
    }
  };
  if (auto status = attach(); !status.ok()) {
    fleet_.tell(fmt::format("{} does not follow {} yet: {}", other().ToString(), host().ToString(),
                            std::string(status.message())));
    return false;
  }
  fleet_.tell(fmt::format("{} follows {}", other().ToString(), host().ToString()));
  return true;
}

absl::Status Promoter::TakeOver(HostAdmin& slave) {
  // What was done so far may have been done although it failed: the hosts and the map are asked again.
  const auto stuck = [&](const absl::Status& why) {
    return absl::Status(
        why.code(),
        fmt::format("{}\nNo host of the pair takes writes now: run the command again, or go back by "
                    "kv shards promote {}",
                    std::string(why.message()), other().ToString()));
  };
  if (auto status = slave.Lead(); !status.ok()) return stuck(status);
  Reached("promote.leads");
  if (auto status = Publish(); !status.ok()) return stuck(status);
  Reached("promote.published");
  if (auto status = slave.AllowWrites(); !status.ok()) return stuck(status);
  return absl::OkStatus();
}

absl::Status Promoter::Publish() {
  for (int conflicts = 0;; ++conflicts) {
    const auto maps = Maps::Load(fleet_.zookeeper, fleet_.root);
    if (!maps.ok()) return maps.status();
    const auto now = PlanOf(*maps, host());
    if (!now.ok()) return now.status();
    if (now->published) return absl::OkStatus();
    if (now->before != plan_.before) {
      return Refuse(
          fmt::format("the shard map has changed meanwhile: {} is the slave of {} now: run the command again "
                      "if it is still to lead",
                      host().ToString(), now->before.master.ToString()));
    }
    absl::Status status = maps->Replace(*fleet_.ledger, held_, plan_.before, {host(), other()});
    if (!absl::IsFailedPrecondition(status) || conflicts == kMaxConflicts) return status;
  }
}

}  // namespace

absl::StatusOr<Promotion> Promote(Fleet& fleet, const Host& host, const PromoteOptions& options) {
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  auto plan = PlanOf(*maps, host);
  if (!plan.ok()) return plan.status();
  if (!plan->published && !options.emergency) {
    const auto moves = LoadMoves(fleet);
    if (!moves.ok()) return moves.status();
    if (const MoveRecord* const move = FindMove(*moves, plan->before); move != nullptr) {
      return Refuse(
          fmt::format("{} is in the move of shards {}: let that end, or cancel it (kv shards move cancel)",
                      host.ToString(), move->range.ToString()));
    }
  }
  auto held = BeginPromotion(fleet, host, *plan, options);
  if (!held.ok()) return held.status();
  // Without a history the promotion goes on.
  if (!options.dry_run) PrepareHistory(fleet.zookeeper, fleet.root).IgnoreError();
  return Promoter(fleet, options, *std::move(plan), *std::move(held)).Run();
}

absl::StatusOr<uint64_t> Fence(Fleet& fleet, const Host& host) {
  auto admin = HostAdmin::Open(host, fleet.access);
  if (!admin.ok()) return admin.status();
  if (auto status = (*admin)->StopWrites(kStopWrites); !status.ok()) return status;
  return (*admin)->EndClients();
}

}  // namespace kvstore::shardops
