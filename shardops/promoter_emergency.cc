#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "base/fail_point.h"
#include "shardops/gtid.h"
#include "shardops/notes.h"
#include "shardops/promoter.h"
#include "shardops/remember.h"

/// Promotions of a slave whose master is gone: what may be lost, and whether that is accepted.
namespace kvstore::shardops {
namespace {

using Json = nlohmann::json;

/// Whether a slave has received transactions that it has not applied.
bool IsBehind(const HostState& slave) {
  return slave.following && CountMissing(slave.following->received, slave.gtid) > 0;
}

}  // namespace

std::string Promoter::DescribeLoss(const HostState& slave, uint64_t* at_least) {
  // A promotion that was stopped has inspected the slave already, and cut it off (RecordInspection). Its
  // findings hold if nothing has arrived since, and nothing that had arrived but was not applied has been
  // thrown away, as happens when the server or its IO thread starts again.
  const Note slave_note = LoadNote(fleet_, host()).value_or(Note());
  const Note master_note = LoadNote(fleet_, other()).value_or(Note());
  const Json& inspected = slave_note.json;
  const Json& seen = master_note.json;
  if (inspected.value("promoted_from", "") == other().ToString() &&
      slave_note.changed_ms >= master_note.changed_ms &&
      CountMissing(slave.gtid, inspected.value("gtid", "")) == 0 &&
      CountNotReceived(inspected.value("gtid", ""), slave) == 0) {
    *at_least = 0;
    return "";
  }
  *at_least = CountNotReceived(seen.value("gtid", ""), slave);
  std::string doubt = MayLackAcknowledged(seen, other(), slave);
  if (*at_least == 0) return doubt;
  const auto seen_at = static_cast<std::time_t>(seen.value("at_ms", uint64_t{0}) / 1000);
  const std::string lacks = fmt::format("it lacks {} transactions that {} had at {:%Y-%m-%d %H:%M:%S} UTC",
                                        *at_least, other().ToString(), fmt::gmtime(seen_at));
  if (!doubt.empty()) return fmt::format("{}; {}", lacks, doubt);
  const Words& words = WordsOf(slave.engine);
  fleet_.report(fmt::format(
      "{}: {}, which no client was told of, because {} answers a commit only when its slave has it "
      "({}), and the slave has all that it was seen to have before those. {}",
      host().ToString(), lacks, other().ToString(), words.wait_no_slave,
      seen.value("hides", false)
          ? fmt::format("Nor has any client read what they wrote ({} is AFTER_SYNC)", words.wait_point)
          : fmt::format("But clients may have read what they wrote, which is gone: {} is AFTER_COMMIT there; "
                        "set it to AFTER_SYNC",
                        words.wait_point)));
  *at_least = 0;
  return "";
}

absl::Status Promoter::CheckDatabases(HostAdmin& slave) const {
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
  fleet_.report(lacks->text + "; accepted");
  return absl::OkStatus();
}

absl::Status Promoter::CheckLoss(const HostState& slave) {
  uint64_t at_least = 0;
  const std::string loss = DescribeLoss(slave, &at_least);
  if (loss.empty()) return absl::OkStatus();
  if (!options_.accept_loss || *options_.accept_loss < at_least) {
    return Refuse(
        fmt::format("{0}: {1}. Bring {3} back if you can: kv shards promote {3} opens it again. Else, to "
                    "lose that: kv shards promote {0} --emergency --accept-loss {2}",
                    host().ToString(), loss, at_least, other().ToString()));
  }
  fleet_.report(fmt::format("{}: {}; accepted", host().ToString(), loss));
  return absl::OkStatus();
}

absl::Status Promoter::RecordInspection(const HostState& slave) {
  Json inspected = {{"promoted_from", other().ToString()},
                    {"gtid", IsBehind(slave) ? slave.following->received : slave.gtid},
                    {"at_ms", WallClockMs()}};
  // The commits of the new master are to wait as those of the old one did.
  if (const Json seen = NoteOrEmpty(fleet_, other()); seen.contains("wait_no_slave")) {
    inspected.update({{"let_go", true},
                      {"wait_no_slave", seen["wait_no_slave"]},
                      {"timeout_ms", seen.value("timeout_ms", uint64_t{0})}});
  }
  if (auto status = WriteNote(fleet_, host(), inspected); !status.ok()) return status;
  // Somebody may have fenced it when it was a slave that took writes. A newer fence holds.
  return ForgetFenced(fleet_, host(), known_);
}

absl::Status Promoter::TakeHost(HostAdmin& admin) const {
  // Whoever has taken this operation over must not lose the host to a process that went on behind its back;
  // and may have ended before the host was claimed.
  if (auto status = held_.Check(); !status.ok()) return status;
  if (auto status = admin.TakeClaim(); !status.ok()) return status;
  return held_.Check();
}

absl::StatusOr<Promotion> Promoter::Emergency() {
  if (const auto master = HostAdmin::Open(other(), fleet_.access); !absl::IsUnavailable(master.status())) {
    return Refuse(fmt::format("{} answers: leave --emergency away", other().ToString()));
  }
  auto slave = HostAdmin::Open(host(), fleet_.access);
  if (!slave.ok()) return slave.status();
  if (!options_.dry_run) {
    if (auto status = TakeHost(**slave); !status.ok()) return status;
  }
  const auto is = (*slave)->Read();
  if (!is.ok()) return is.status();
  if (auto status = CheckSlave(*is); !status.ok()) return status;
  if (options_.only_if_lost && is->following && is->following->receives) {
    return Refuse(fmt::format("{} receives from {}, which lives", host().ToString(), other().ToString()));
  }
  if (auto status = CheckLoss(*is); !status.ok()) return status;
  Promotion promotion{.before = plan_.before, .after = {host(), other()}};
  if (options_.dry_run) {
    // While received transactions are not applied yet, they may create databases that are missing.
    if (auto status = IsBehind(*is) ? absl::OkStatus() : CheckDatabases(**slave); !status.ok()) return status;
    fleet_.report(fmt::format("{} would apply what it has, and take the place of {}", host().ToString(),
                              other().ToString()));
    return promotion;
  }
  if (auto status = CheckNotFenced(); !status.ok()) return status;
  if (auto status = RecordInspection(*is); !status.ok()) return status;
  Reached("promote.begin");
  if (is->following) {
    if (auto status = (*slave)->ApplyAll(options_.catch_up); !status.ok()) return status;
  }
  if (auto status = CheckDatabases(**slave); !status.ok()) return status;
  Reached("promote.applied");
  if (auto status = TakeOver(**slave); !status.ok()) return status;
  fleet_.report(fmt::format(
      "{0} takes writes. {1} must not: it comes back read-only if it is configured so, else run kv "
      "shards fence {1} before clients reach it",
      host().ToString(), other().ToString()));
  Reached("promote.opened");
  return promotion;
}

}  // namespace kvstore::shardops
