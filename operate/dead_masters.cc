#include "operate/dead_masters.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <set>
#include <utility>

#include "operate/fence.h"
#include "operate/verdict.h"
#include "shardops/promote.h"

namespace kvstore::operate {
namespace {

using shardops::Pair;

/// A look at the masters that is older than this is not acted upon.
constexpr uint64_t kLookHoldsMs = 10'000;
/// For how long a master counts as fenced: later somebody may have switched it on again, and the program is
/// run once more.
constexpr uint64_t kFencedMs = 60'000;
/// How long a pair is left alone after an attempt that failed.
constexpr std::chrono::seconds kAfterFailure{5};

/// Whether a promotion that was begun has been completed, by this record or by the maps.
bool IsDone(const PairPromotion& promotion, const Pair& pair) {
  return promotion.done || promotion.to == pair.master;
}

/// Whether a promotion was begun within the hour; also if it was begun in the future, by a clock that was
/// wrong.
bool IsRecent(const PairPromotion& promotion, uint64_t now_ms) {
  return now_ms < promotion.begun_ms || now_ms - promotion.begun_ms < kBetweenPromotionsMs;
}

}  // namespace

void DeadMasters::TellOnce(Leader& leader, const Pair& pair, Event event) {
  if (attempts_[pair].told.insert(event.kind + event.text).second) leader.journal.Add(std::move(event));
}

std::vector<Finding> DeadMasters::Handle(Leader& leader, std::span<const Pair> pairs,
                                         std::span<const Silence> silences) {
  std::vector<Finding> findings;
  std::set<Pair> silent;
  has_more_ = acted_ = false;
  for (const Silence& silence : silences) {
    for (const Pair& pair : pairs) {
      if (pair.master != silence.master) continue;
      silent.insert(pair);
      std::string text;
      try {
        text = HandleOne(leader, pair, silence);
      } catch (const std::exception& error) {
        // Such as a note in ZooKeeper that somebody has edited. The other pairs are not to suffer.
        text = fmt::format("does not answer, and could not be looked after: {}", error.what());
      }
      if (!text.empty()) findings.push_back({pair.master.ToString(), std::move(text), page::kMaster});
    }
  }
  std::erase_if(attempts_, [&](const auto& one) { return !silent.contains(one.first); });
  return findings;
}

std::string DeadMasters::HandleOne(Leader& leader, const Pair& pair, const Silence& silence) {
  const Verdict verdict = Judge(silence, leader.meeting.others, leader.meeting.now_ms);
  if (!verdict.dead) {
    return fmt::format("does not answer: {}. It is not replaced: {}", silence.error, verdict.why);
  }
  const std::string slave = pair.slave.ToString();
  const std::string by_hand =
      fmt::format("kv shards promote {} --emergency puts its slave in its place", slave);
  const auto record = leader.pairs.Load(pair);
  if (!record.ok()) return std::string(record.status().message());
  if (!record->on) {
    return fmt::format("is dead: {}. kv operate is off for this pair. {}", verdict.why, by_hand);
  }
  if (const auto& last = record->promotion;
      last && IsDone(*last, pair) && IsRecent(*last, leader.meeting.now_ms)) {
    return fmt::format(
        "is dead: {}. kv operate has put a slave in the place of {} within the hour, and does nothing more "
        "in "
        "this pair: find out what kills them. {}",
        verdict.why, last->from.ToString(), by_hand);
  }
  if (acted_ || BootClockMs() - leader.looked_ms > kLookHoldsMs) {
    has_more_ = true;
    return fmt::format("is dead: {}. It is replaced in a moment", verdict.why);
  }
  if (Clock::now() < attempts_[pair].next) {
    return fmt::format("is dead: {}. {} could not take its place, which is tried again", verdict.why, slave);
  }
  return Promote(leader, pair, *record, verdict.why);
}

std::string DeadMasters::FenceMaster(Leader& leader, const Pair& pair, PairRecord& record) {
  const uint64_t fenced_ms = record.promotion->fenced_ms;
  const uint64_t now_ms = leader.meeting.now_ms;
  if (leader.options.fence.empty() || (fenced_ms <= now_ms && now_ms - fenced_ms < kFencedMs)) return "";
  // This process may have been stopped since it looked.
  if (BootClockMs() - leader.looked_ms > kLookHoldsMs) return "it was looked at too long ago";
  if (auto fenced = RunFence(leader.options, pair.master, leader.is_busy); !fenced.ok())
    return std::string(fenced.message());
  leader.journal.Add({.kind = "act",
                      .subject = pair.master.ToString(),
                      .text = "was fenced by " + leader.options.fence.front()});
  record.promotion->fenced_ms = now_ms;
  if (auto saved = leader.pairs.Save(pair, record, leader.meeting.still_leads); !saved.ok()) {
    return std::string(saved.message());
  }
  ++record.version;
  return "";
}

std::string DeadMasters::Promote(Leader& leader, const Pair& pair, PairRecord record,
                                 const std::string& why) {
  const std::string master = pair.master.ToString();
  const std::string slave = pair.slave.ToString();
  const auto fail = [&](const std::string& text) {
    attempts_[pair].next = Clock::now() + kAfterFailure;
    ++failed_;
    TellOnce(leader, pair, {.kind = "fail", .subject = master, .text = text, .page = page::kMaster});
    return text;
  };
  acted_ = true;
  // Nothing is written down, and nothing fenced, for a promotion that is refused.
  const auto checked =
      shardops::Promote(leader.fleet, pair.slave, {.emergency = true, .only_if_lost = true, .dry_run = true});
  if (!checked.ok()) {
    return fail(fmt::format("is dead: {}. {} cannot take its place: {}", why, slave,
                            std::string(checked.status().message())));
  }
  if (leader.dry_run) {
    const std::string would = fmt::format("would put {} in its place: {}", slave, why);
    TellOnce(leader, pair, {.kind = "would", .subject = master, .text = would});
    return would;
  }
  const auto& last = record.promotion;
  const bool goes_on =
      last && last->to == pair.slave && !last->done && IsRecent(*last, leader.meeting.now_ms);
  if (!goes_on) {
    record.promotion = {.from = pair.master, .to = pair.slave, .begun_ms = leader.meeting.now_ms};
  }
  // From here on a successor goes on with it. This fails if somebody has switched the pair off meanwhile.
  if (auto saved = leader.pairs.Save(pair, record, leader.meeting.still_leads); !saved.ok()) {
    return fmt::format("is dead, but that {} is to take its place cannot be written down: {}", slave,
                       std::string(saved.message()));
  }
  ++record.version;
  if (const std::string failure = FenceMaster(leader, pair, record); !failure.empty()) {
    return fail(
        fmt::format("is dead, but cannot be fenced, so {} does not take its place: {}", slave, failure));
  }
  TellOnce(leader, pair,
           {.kind = "act",
            .subject = master,
            .text = fmt::format("{} {} in its place: {}", goes_on ? "goes on to put" : "puts", slave, why)});
  const auto promotion =
      shardops::Promote(leader.fleet, pair.slave, {.emergency = true, .only_if_lost = true});
  if (!promotion.ok()) {
    return fail(fmt::format("is dead, and {} could not take its place: {}", slave,
                            std::string(promotion.status().message())));
  }
  ++promoted_;
  record.promotion->done = true;
  // If this is not written now, Repairs does it.
  leader.pairs.Save(pair, record, leader.meeting.still_leads).IgnoreError();
  leader.journal.Add(
      {.kind = "act",
       .subject = slave,
       .text = fmt::format(
           "is the master in the place of {}; until that is back there is one copy of its shards, "
           "and commits do not wait for a second one",
           master),
       .page = page::kReplaced});
  return "";
}

}  // namespace kvstore::operate
