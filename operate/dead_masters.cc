#include "operate/dead_masters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "operate/fence.h"
#include "operate/verdict.h"
#include "shardops/promote.h"

namespace kvstore::operate {
namespace {

using shardops::Pair;

/// Whether a promotion that was begun has been completed, by this record or by the maps.
bool IsDone(const PairPromotion& promotion, const Pair& pair) {
  return promotion.done || promotion.to == pair.master;
}

}  // namespace

void DeadMasters::TellOnce(Leader& leader, const Pair& pair, Event event) {
  std::string& last = told_[pair];
  std::string text = event.kind + event.text;
  if (text == last) return;
  last = std::move(text);
  leader.journal.Add(std::move(event));
}

std::vector<Finding> DeadMasters::Handle(Leader& leader, std::span<const Pair> pairs,
                                         std::span<const Silence> silences) {
  std::vector<Finding> findings;
  std::set<Pair> silent;
  for (const Silence& silence : silences) {
    for (const Pair& pair : pairs) {
      if (pair.master != silence.master) continue;
      silent.insert(pair);
      if (std::string text = HandleOne(leader, pair, silence); !text.empty()) {
        findings.push_back({pair.master.ToString(), std::move(text), page::kMaster});
      }
    }
  }
  std::erase_if(told_, [&](const auto& one) { return !silent.contains(one.first); });
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
      last && IsDone(*last, pair) && last->begun_ms + kBetweenPromotionsMs > leader.meeting.now_ms) {
    return fmt::format(
        "is dead: {}. kv operate has promoted it itself within the hour, in the place of {}, and "
        "does nothing more here: find out what kills them. {}",
        verdict.why, last->from.ToString(), by_hand);
  }
  return Promote(leader, pair, *record, verdict.why);
}

std::string DeadMasters::Promote(Leader& leader, const Pair& pair, PairRecord record,
                                 const std::string& why) {
  const std::string master = pair.master.ToString();
  const std::string slave = pair.slave.ToString();
  const auto fail = [&](const std::string& text) {
    if (told_[pair] != "fail" + text) ++failed_;
    TellOnce(leader, pair, {.kind = "fail", .subject = master, .text = text, .page = page::kMaster});
    return text;
  };
  // Nothing is fenced for a promotion that is refused.
  const auto checked = shardops::Promote(leader.fleet, pair.slave, {.emergency = true, .dry_run = true});
  if (!checked.ok()) {
    return fail(fmt::format("is dead: {}. {} cannot take its place: {}", why, slave,
                            std::string(checked.status().message())));
  }
  if (leader.dry_run) {
    const std::string would = fmt::format("would put {} in its place: {}", slave, why);
    TellOnce(leader, pair, {.kind = "would", .subject = master, .text = would});
    return would;
  }
  if (!leader.options.fence.empty()) {
    if (auto fenced = RunFence(leader.options, pair.master); !fenced.ok()) {
      return fail(fmt::format("is dead, but cannot be fenced, so {} does not take its place: {}", slave,
                              std::string(fenced.message())));
    }
    leader.journal.Add(
        {.kind = "act", .subject = master, .text = "was fenced by " + leader.options.fence.front()});
  }
  const bool goes_on = record.promotion && record.promotion->to == pair.slave;
  record.promotion = {
      .from = pair.master, .to = pair.slave, .begun_ms = leader.meeting.now_ms, .done = false};
  // From here on a successor goes on with it.
  if (auto saved = leader.pairs.Save(pair, record, leader.meeting.still_leads); !saved.ok()) {
    return fmt::format("is dead, but that {} is to take its place cannot be recorded: {}", slave,
                       std::string(saved.message()));
  }
  ++record.version;
  TellOnce(leader, pair,
           {.kind = "act",
            .subject = master,
            .text = fmt::format("{} {} in its place: {}", goes_on ? "goes on to put" : "puts", slave, why)});
  const auto promotion = shardops::Promote(leader.fleet, pair.slave, {.emergency = true});
  if (!promotion.ok()) {
    return fail(fmt::format("is dead, and {} could not take its place: {}", slave,
                            std::string(promotion.status().message())));
  }
  ++promoted_;
  record.promotion->done = true;
  // If this is not written, the maps say the same.
  leader.pairs.Save({promotion->after.master, promotion->after.slave}, record, leader.meeting.still_leads)
      .IgnoreError();
  leader.journal.Add(
      {.kind = "act",
       .subject = slave,
       .text = fmt::format("is the master in the place of {}; until that is back there is one copy "
                           "of its shards, and commits do not wait for a second one",
                           master),
       .page = page::kReplaced});
  return "";
}

}  // namespace kvstore::operate
