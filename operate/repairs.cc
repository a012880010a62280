#include "operate/repairs.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "shardops/notes.h"
#include "shardops/promote.h"

namespace kvstore::operate {
namespace {

using shardops::HostReport;

/// How long a host is left alone after an attempt.
constexpr std::chrono::seconds kBetweenAttempts{20};

}  // namespace

bool Repairs::IsDue(const Host& host) {
  const auto now = Clock::now();
  const auto [found, first] = tried_.try_emplace(host, now);
  if (first) return true;
  if (now - found->second < kBetweenAttempts) return false;
  found->second = now;
  return true;
}

void Repairs::Complete(Leader& leader, const shardops::Pair& pair, shardops::PromoteOptions options,
                       const Host& subject, const std::string& text) {
  if (leader.dry_run) {
    leader.journal.Add({.kind = "would", .subject = subject.ToString(), .text = "would make it " + text});
    return;
  }
  options.only_complete = true;
  std::string said;
  shardops::FleetOperator fleet = leader.fleet;
  fleet.report = [&](const std::string& line) { said = line; };
  const auto completed = shardops::Promote(fleet, pair.master, options);
  if (!completed.ok()) said = std::string(completed.status().message());
  if (completed.ok() && (completed->follows || subject == pair.master)) {
    failed_.erase(subject);
    leader.journal.Add({.kind = "act", .subject = subject.ToString(), .text = "was made to " + text});
    return;
  }
  failed_[subject] = fmt::format("cannot be made to {}: {}", text, said);
}

bool Repairs::WasRestarted(const HostReport& report) {
  const auto before = started_.find(report.host);
  if (before == started_.end()) return false;
  if (!shardops::IsSameRun(before->second, report.state->started_s)) return true;
  // Somebody has made it read-only since, and knows why: that holds also if it is started again.
  started_.erase(before);
  return false;
}

void Repairs::HandleMaster(Leader& leader, const HostReport& report, const PairRecord& record) {
  const auto& last = record.promotion;
  const bool promoted = last && !last->done && last->to == report.host;
  if (!report.state->read_only) {
    started_.insert_or_assign(report.host, report.state->started_s);
    if (promoted && !leader.dry_run) {
      // From here on somebody who makes it read-only knows why.
      PairRecord done = record;
      done.promotion->done = true;
      leader.pairs.Save(report.pair, done, leader.meeting.still_leads).IgnoreError();
    }
    return;
  }
  if (report.state->following) return;
  if (promoted) {
    // The leader that has begun the promotion may hang, and hold the host.
    if (IsDue(report.host)) {
      Complete(leader, report.pair, {.take_hosts = true}, report.host,
               "take writes, which a leader has begun");
    }
  } else if (WasRestarted(report) && IsDue(report.host)) {
    OpenRestarted(leader, report);
  }
}

void Repairs::OpenRestarted(Leader& leader, const HostReport& report) {
  // Somebody may have fenced it, and started it again, since it was inspected last.
  const auto note = shardops::LoadNote(leader.fleet, report.host);
  if (!note.ok()) return;
  if (const std::string by = shardops::FencedBy(*note); !by.empty()) {
    failed_[report.host] = fmt::format(
        "was started again, and stays read-only since it was fenced by {}: kv shards promote {} opens it", by,
        report.host.ToString());
    return;
  }
  // A MariaDB server that died may have lost what it has sent to its slave, and acknowledged.
  Complete(leader, report.pair, {.needs_other = true}, report.host, "take writes again after its restart");
}

void Repairs::FenceReplaced(Leader& leader, const HostReport& report) {
  const std::string name = report.host.ToString();
  const std::string master = report.pair.master.ToString();
  if (leader.dry_run) {
    leader.journal.Add(
        {.kind = "would", .subject = name, .text = "would fence it: it was replaced, and takes writes"});
    return;
  }
  const auto ended = shardops::FenceSlave(leader.fleet, report.pair);
  if (!ended.ok()) {
    failed_[report.host] =
        fmt::format("came back, takes writes although {} is the master now, and cannot be fenced: {}", master,
                    std::string(ended.status().message()));
    return;
  }
  failed_.erase(report.host);
  tried_.erase(report.host);  // It can follow now.
  leader.journal.Add(
      {.kind = "act",
       .subject = name,
       .text = fmt::format("was fenced: it came back, and took writes although {} is the master now; {} "
                           "connections were ended",
                           master, *ended),
       .page = page::kReplaced});
}

void Repairs::TakeBack(Leader& leader, const HostReport& report, const HostReport* master) {
  if (!report.state->read_only) {
    if (IsDue(report.host)) FenceReplaced(leader, report);
    return;
  }
  // A master that somebody has fenced stays so.
  if (master == nullptr || !master->state || master->state->read_only) return;
  if (!report.state->following && IsDue(report.host)) {
    Complete(leader, report.pair, {.open = false}, report.host,
             fmt::format("follow {}", report.pair.master.ToString()));
  }
}

void Repairs::GiveUp(Leader& leader, const HostReport& report, const HostReport* master) {
  if (master == nullptr || !master->state || master->state->read_only || !report.state->read_only) return;
  const auto& following = report.state->following;
  if (following && (following->receives || following->reconnects)) return;
  // Commits of the master wait for it. The leader that has cut it off may hang, and hold it.
  if (IsDue(report.host)) {
    Complete(leader, report.pair, {.take_hosts = true, .open = false}, report.host,
             fmt::format("follow {} again, which lives", report.pair.master.ToString()));
  }
}

std::vector<Finding> Repairs::Handle(Leader& leader, const std::vector<HostReport>& reports) {
  std::vector<Finding> findings;
  const auto records = leader.pairs.LoadAll();
  if (!records.ok()) return findings;
  std::map<Host, const HostReport*> by_host;
  for (const HostReport& report : reports) by_host.emplace(report.host, &report);
  std::erase_if(failed_, [&](const auto& one) { return !by_host.contains(one.first); });
  for (const HostReport& report : reports) {
    if (!report.state) continue;
    if (report.problems.empty()) {
      failed_.erase(report.host);
      tried_.erase(report.host);
    }
    const auto found = records->find(PairRecords::NameOf(report.pair));
    if (found == records->end()) continue;
    const auto& record = found->second;
    if (!record.ok()) {
      if (report.master)
        findings.push_back({found->first, std::string(record.status().message()), page::kHost});
      continue;
    }
    if (!record->on) continue;
    const auto& last = record->promotion;
    const auto master = by_host.find(report.pair.master);
    const HostReport* const its_master = master == by_host.end() ? nullptr : master->second;
    try {
      if (report.master) {
        HandleMaster(leader, report, *record);
      } else if (last && last->from == report.host && last->to == report.pair.master) {
        TakeBack(leader, report, its_master);
      } else if (last && !last->done && last->from == report.pair.master && last->to == report.host) {
        GiveUp(leader, report, its_master);
      }
    } catch (const std::exception& error) {
      failed_[report.host] = fmt::format("could not be looked after: {}", error.what());
    }
  }
  for (const auto& [host, text] : failed_) findings.push_back({host.ToString(), text, page::kReplaced});
  return findings;
}

}  // namespace kvstore::operate
