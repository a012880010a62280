#include "shardops/promoter.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/fail_point.h"
#include "shardops/gtid.h"
#include "shardops/notes.h"
#include "shardops/remember.h"

namespace kvstore::shardops {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

/// How often Drain tries to make the master read-only.
constexpr int kStopWritesAttempts = 3;
/// The lag, in seconds, above which a planned promotion is refused, since clients would wait for it.
constexpr uint64_t kMaxLag = 2;

/// Returns how many transactions its slave has received, applied or not, that a master has lost by a crash.
/// One that takes writes may send them, on MySQL, before it has them itself.
uint64_t CountLost(const HostState& master, const HostState& slave) {
  if (!master.read_only || !slave.following || slave.following->master != master.host) return 0;
  return CountMissingOfDomain(slave.following->received, master.gtid, master.gtid_domain);
}

}  // namespace

absl::StatusOr<PromotionPlan> PlanPromotion(const Maps& maps, const Host& host) {
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
  if (as_slave.empty()) return PromotionPlan{as_master.front(), true};
  return PromotionPlan{as_slave.front(), false};
}

absl::StatusOr<Promotion> Promoter::Run() {
  if (!options_.only_complete) {
    auto note = LoadNote(fleet_, host());
    if (!note.ok()) return note.status();
    known_ = *std::move(note);
  }
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
    return Refuse(fmt::format(
        "{}: a master needs {}: set them in its configuration, start it again, then run the command again",
        name, WordsOf(slave.engine).master_settings));
  }
  if (!slave.following) {
    // An interrupted promotion got this far.
    if (slave.read_only) return absl::OkStatus();
    // It may have writes that were acknowledged, so this proposes nothing that discards them.
    return Refuse(
        fmt::format("{0}: follows nobody and takes writes: it is no slave of {1}. kv shards fence {0}, then "
                    "kv shards promote {1} compares what the two have",
                    name, other().ToString()));
  }
  if (slave.following->master != other()) {
    return Refuse(fmt::format(
        "{0}: follows {1}, the map says {2}: is the map right? kv shards history shows what it was. "
        "If it is, kv shards replace-slave {0} --discard makes it a slave of that one",
        name, slave.following->master.ToString(), other().ToString()));
  }
  if (!slave.read_only)
    return Refuse(name + ": is a slave that takes writes: kv shards fence " + name + " makes it read-only");
  if (!slave.following->applies) {
    return Refuse(fmt::format(
        "{0}: does not apply what comes from its master: {1}\nMend that, and {2} there "
        "(nothing else while the master is away: what has come in and is not applied would be thrown "
        "away); or, while the master lives, kv shards replace-slave {0} --discard makes it new",
        name, slave.following->error, WordsOf(slave.engine).start_applying));
  }
  return absl::OkStatus();
}

absl::Status Promoter::CheckPlanned(const HostState& master, const HostState& slave) const {
  // A slave that has more than its master cannot receive from it. Nobody writes meanwhile.
  const bool ahead = CountLost(master, slave) > 0;
  if (slave.following && !ahead) {
    if (!slave.following->receives) {
      return Refuse(
          fmt::format("{0}: is not connected to its master: {1}\nkv shards promote {2} has it follow again",
                      host().ToString(), slave.following->error, other().ToString()));
    }
    if (slave.following->lag_s.value_or(UINT64_MAX) > kMaxLag) {
      return Refuse(fmt::format(
          "{}: is {} s behind; clients would wait for it: run the command again when kv shards status shows "
          "less",
          host().ToString(), slave.following->lag_s ? std::to_string(*slave.following->lag_s) : "unknown"));
    }
  }
  if (master.following) {
    return Refuse(fmt::format(
        "{0}: is a master by the map, and follows {1}: if it is to lead, {2} there, then kv shards "
        "promote {0}",
        other().ToString(), master.following->master.ToString(), WordsOf(master.engine).forget_master));
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
  if (auto status = CheckSameEngine(**master, **slave); !status.ok()) return status;
  for (HostAdmin* const admin : {master->get(), slave->get()}) {
    if (auto status = admin->Claim(); !status.ok()) return status;
  }
  const auto was = (*master)->Read();
  if (!was.ok()) return was.status();
  const auto is = (*slave)->Read();
  if (!is.ok()) return is.status();
  if (auto status = CheckSlave(*is); !status.ok()) return status;
  if (auto status = CheckPlanned(*was, *is); !status.ok()) return status;
  Promotion promotion{.before = plan_.before, .after = {host(), other()}};
  if (options_.dry_run) {
    fleet_.report(fmt::format("{} would stop taking writes, {} apply the rest and take its place",
                              other().ToString(), host().ToString()));
    return promotion;
  }
  if (auto status = RecordMasterState(fleet_, *was, slave->get()); !status.ok()) return status;
  // As a master the host begins without a slave, so an earlier note about it as a master no longer holds. Its
  // commits are to wait as those of the old master do.
  const SemiSyncWait wanted = WantedSemiSync(NoteOrEmpty(fleet_, other()), *was);
  if (auto status = RecordSuspendedWait(fleet_, host(), wanted); !status.ok()) return status;
  if (auto status = CheckNotFenced(); !status.ok()) return status;
  if (auto status = ForgetFenced(fleet_, host(), known_); !status.ok()) return status;
  Reached("promote.begin");

  const auto stopped = Drain(**master, *was, **slave);
  if (!stopped.ok()) return stopped.status();
  if (auto status = TakeOver(**slave); !status.ok()) return status;
  promotion.write_pause_ms =
      static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(Clock::now() - *stopped).count());
  fleet_.report(fmt::format("{} takes writes, {} ms later", host().ToString(), promotion.write_pause_ms));
  Reached("promote.opened");
  promotion.follows = Attach(**slave, **master, /*follows=*/false);
  Reached("promote.attached");
  return promotion;
}

absl::StatusOr<Promoter::Clock::time_point> Promoter::Drain(HostAdmin& master, const HostState& was,
                                                            HostAdmin& slave) {
  auto begin = Clock::now();
  const auto go_back = [&](absl::Status why) {
    // Why it takes no writes is not known here: it may lack what was written to the slave.
    if (was.read_only) {
      return absl::Status(why.code(), fmt::format("{}; {} takes no writes, as before",
                                                  std::string(why.message()), other().ToString()));
    }
    // Two hosts of a pair must not take writes, as they would if the slave was promoted in an emergency while
    // this process waited.
    if (PromotedMeanwhile()) {
      return absl::Status(why.code(),
                          fmt::format("{}; {} stays read-only: the maps have {} as the master now",
                                      std::string(why.message()), other().ToString(), host().ToString()));
    }
    if (auto status = master.AllowWrites(); !status.ok()) {
      return absl::Status(why.code(),
                          fmt::format("{}; and {} could not be opened again: {}", std::string(why.message()),
                                      other().ToString(), std::string(status.message())));
    }
    return why;
  };
  for (int attempt = 1;; ++attempt) {
    begin = Clock::now();
    absl::Status status = master.StopWrites(kStopWrites);
    if (status.ok()) break;
    // Clients go on between two attempts, and the statement that was in the way may have ended by the next.
    if (!absl::IsUnavailable(status) || attempt == kStopWritesAttempts) return status;
  }
  Reached("promote.stopped");
  const auto ended = master.EndClients();
  if (!ended.ok()) return go_back(ended.status());
  fleet_.report(
      fmt::format("{} takes no more writes, {} connections were ended", other().ToString(), *ended));
  Reached("promote.fenced");
  const auto last = master.Read();
  if (!last.ok()) return go_back(last.status());
  if (auto status = AwaitAll(slave, *last); !status.ok()) return go_back(status);
  fleet_.report(fmt::format("{} has all: {}", host().ToString(), last->gtid));
  Reached("promote.applied");
  return begin;
}

absl::Status Promoter::AwaitAll(HostAdmin& slave, const HostState& master) const {
  const auto state = slave.Read();
  if (!state.ok()) return state.status();
  if (state->following) {
    // A master that has lost by a crash what this slave has received can send it nothing more.
    return slave.AwaitGtid(CountLost(master, *state) > 0 ? state->following->received : master.gtid,
                           options_.catch_up);
  }
  // An earlier attempt has applied everything and got this far; or this host has led meanwhile, and its
  // position as a slave is that from before.
  if (slave.AwaitGtid(master.gtid, milliseconds(0)).ok()) return absl::OkStatus();
  const uint64_t lacks = CountBeyond(master.gtid_state, state->gtid_state, /*unknown=*/true);
  if (lacks == 0) return absl::OkStatus();
  return Refuse(fmt::format(
      "{0}: follows nobody, and lacks {1} transactions that {2} has: kv shards promote {2} compares "
      "what the two have",
      host().ToString(), lacks, other().ToString()));
}

bool Promoter::PromotedMeanwhile() const {
  if (!absl::IsAborted(held_.Check())) return false;
  const auto maps = Maps::Load(fleet_.zookeeper, fleet_.root);
  if (!maps.ok()) return false;
  const auto now = PlanPromotion(*maps, other());
  return now.ok() && !now->published;
}

absl::StatusOr<Promotion> Promoter::Complete() {
  auto master = HostAdmin::Open(host(), fleet_.access);
  if (!master.ok()) return master.status();
  Promotion promotion{.before = plan_.before, .after = plan_.before};
  const auto slave = HostAdmin::Open(other(), fleet_.access);
  if (!slave.ok() && !absl::IsUnavailable(slave.status())) return slave.status();
  if (!slave.ok() && options_.needs_other) {
    return absl::UnavailableError(
        fmt::format("{}\nIt may have transactions that {} has lost: bring it back; or, to lose them, kv "
                    "shards promote {}",
                    std::string(slave.status().message()), host().ToString(), host().ToString()));
  }
  if (slave.ok()) {
    if (auto status = CheckSameEngine(**master, **slave); !status.ok()) return status;
  }
  for (HostAdmin* const admin : {master->get(), slave.ok() ? slave->get() : nullptr}) {
    if (admin == nullptr) continue;
    // An emergency that was cut short may have left a process that hangs.
    const bool takes = (options_.emergency || options_.take_hosts) && !options_.dry_run;
    absl::Status claimed = takes ? TakeHost(*admin) : admin->Claim();
    if (!claimed.ok()) return claimed;
  }
  // The slave is read before the master, which goes on writing: otherwise the slave would seem to have
  // transactions that its master lacks.
  std::optional<HostState> there;
  if (slave.ok()) {
    auto state = (*slave)->Read();
    if (!state.ok()) return state.status();
    there = *std::move(state);
  }
  const auto is = (*master)->Read();
  if (!is.ok()) return is.status();
  const auto found = CheckOther(*is, there ? &*there : nullptr);
  if (!found.ok()) return found.status();
  if (is->following) {
    return Refuse(
        fmt::format("{0}: is the master by the map, and follows {1}: {2} there, then kv shards promote {0}",
                    host().ToString(), is->following->master.ToString(), WordsOf(is->engine).forget_master));
  }
  if (options_.dry_run) {
    promotion.follows = found->follows && CheckReplicates(other(), *there, host()).ok();
    return promotion;
  }
  if (is->read_only && !options_.open) {
    return Refuse(
        fmt::format("{}: is read-only: kv shards promote {} opens it", host().ToString(), host().ToString()));
  }
  if (is->read_only) {
    if (auto status = CheckNotFenced(); !status.ok()) return status;
  }
  bool follows = found->follows;
  if (NoteOrEmpty(fleet_, other()).value("promoted_from", "") == host().ToString()) {
    // An emergency promotion of the other host was given up, after it had cut that host off and recorded what
    // it had (RecordInspection). That does not hold any more once this host takes writes.
    if (auto status = WriteNote(fleet_, other(), Json::object()); !status.ok()) return status;
    follows = false;
  }
  if (is->read_only) {
    // The server may have restarted as a slave; it acknowledges commits without a slave until one is
    // connected. The note from before the restart must not be taken to hold on.
    const SemiSyncWait wanted = WantedSemiSync(NoteOrEmpty(fleet_, host()), *is);
    Reached("promote.opening");
    if (auto status = RecordSuspendedWait(fleet_, host(), wanted); !status.ok()) return status;
    // An emergency promotion of the other host first takes the claims away, then reads the note. So either it
    // learns from the note that commits are acknowledged here without it, or this host is not opened.
    if (auto status = held_.Check(); !status.ok()) return status;
    if (!options_.only_complete) {
      if (auto status = ForgetFenced(fleet_, host(), known_); !status.ok()) return status;
    }
    Reached("promote.allowing");
    if (auto status = (*master)->BecomeMaster(); !status.ok()) return status;
    if (auto status = (*master)->AllowWrites(); !status.ok()) return status;
    Reached("promote.allowed");
    fleet_.report(host().ToString() + " takes writes");
    if (!slave.ok()) {
      fleet_.report(fmt::format("{} does not answer: whether it has transactions that {} lacks is not known",
                                other().ToString(), host().ToString()));
    }
  }
  Reached("promote.opened");
  if (slave.ok() && found->usable) promotion.follows = Attach(**master, **slave, follows);
  return promotion;
}

absl::Status Promoter::CheckNotFenced() const {
  if (auto status = fleet_.zookeeper.Sync(fleet_.root); !status.ok()) return status;
  const auto note = LoadNote(fleet_, host());
  if (!note.ok()) return note.status();
  const std::string by = FencedBy(*note);
  if (by.empty() || HaveSameFence(*note, known_)) return absl::OkStatus();
  return Refuse(fmt::format("{0}: stays read-only since it was fenced by {1}: kv shards promote {0} opens it",
                            host().ToString(), by));
}

absl::StatusOr<Promoter::OtherHost> Promoter::CheckOther(const HostState& master, const HostState* slave) {
  OtherHost found;
  if (auto status = CheckCopyEnded(fleet_, other()); absl::IsFailedPrecondition(status)) {
    fleet_.report(std::string(status.message()));
    found.usable = false;
  } else if (!status.ok()) {
    return status;
  }
  if (slave == nullptr) return found;
  if (!slave->read_only) {
    return Refuse(fmt::format("{} takes writes too, the map says that {} is the master: kv shards fence {}",
                              other().ToString(), host().ToString(), other().ToString()));
  }
  // A slave that replicates nothing, as one whose notes are damaged after kill -9, must be told to follow.
  // So must one that was only told to receive nothing more.
  const auto& following = slave->following;
  found.follows =
      found.usable && following && following->master == host() &&
      (following->receives || following->reconnects || (following->applies && !following->error.empty()));
  const uint64_t lost = CountLost(master, *slave);
  const uint64_t more = std::max(lost, CountBeyond(slave->gtid_state, master.gtid_state, /*unknown=*/false));
  if (more == 0 || !found.usable) return found;
  bool has_all = CountBeyond(master.gtid_state, slave->gtid_state, /*unknown=*/true) == 0;
  if (lost > 0) {
    // It may have applied less than its master still has, and will apply all. A move may have brought the
    // master transactions of another domain, which it can send nobody now.
    has_all = has_all || CountMissingOfDomain(master.gtid, AllOf(*slave), master.gtid_domain) == 0;
  }
  // The transactions that only the slave has were acknowledged: only a person may give them up.
  if (has_all || (lost > 0 && options_.only_complete)) {
    return Refuse(fmt::format("{} has {} transactions that {} lacks: kv shards promote {}",
                              other().ToString(), more, host().ToString(), other().ToString()));
  }
  // A master that died may have begun transactions that its slave never got, and no client was told of.
  fleet_.report(
      fmt::format("{} has {} transactions that {} never had, so it cannot follow: kv shards "
                  "replace-slave {} --discard makes it new",
                  other().ToString(), more, host().ToString(), other().ToString()));
  return OtherHost{.usable = false, .follows = false};
}

absl::Status Promoter::TakeOver(HostAdmin& slave) {
  // A step that failed may have been done all the same. The next command asks the hosts and the map.
  const auto stuck = [&](const absl::Status& why) {
    return absl::Status(
        why.code(),
        fmt::format("{}\nNo host of the pair takes writes now: run the command again, or go back by "
                    "kv shards promote {}",
                    std::string(why.message()), other().ToString()));
  };
  if (auto status = slave.BecomeMaster(); !status.ok()) return stuck(status);
  Reached("promote.leads");
  if (auto status = Publish(); !status.ok()) return stuck(status);
  Reached("promote.published");
  // A process that has fenced the host meanwhile has taken the claim away, and ended this connection (Fence).
  if (auto status = slave.AllowWrites(); !status.ok()) return stuck(status);
  return absl::OkStatus();
}

absl::Status Promoter::Publish() {
  for (int conflicts = 0;; ++conflicts) {
    const auto maps = Maps::Load(fleet_.zookeeper, fleet_.root);
    if (!maps.ok()) return maps.status();
    const auto now = PlanPromotion(*maps, host());
    if (!now.ok()) return now.status();
    if (now->published) return absl::OkStatus();
    if (now->before != plan_.before) {
      return Refuse(
          fmt::format("the shard map has changed meanwhile: {} is the slave of {} now: run the command again "
                      "if it is still to lead",
                      host().ToString(), now->before.master.ToString()));
    }
    absl::Status status = maps->Replace(*fleet_.ledger, held_, plan_.before, {host(), other()});
    if (!absl::IsFailedPrecondition(status) || conflicts == kMaxMapConflicts) return status;
  }
}

}  // namespace kvstore::shardops
