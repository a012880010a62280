#include "operate/repairs.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "shardops/promote.h"

namespace kvstore::operate {
namespace {

using shardops::HostReport;

/// By how much two looks at the same server may differ in when it was started, which it says in seconds.
constexpr uint64_t kStartedMs = 2'000;
/// How long a host is left alone after an attempt.
constexpr std::chrono::seconds kBetweenAttempts{20};

/// When a server was started, in ms since 1970 by this machine's clock.
uint64_t StartedMs(const shardops::HostState& state) { return WallClockMs() - state.uptime_s * 1000; }

}  // namespace

bool Repairs::IsDue(const Host& host) {
  const auto now = Clock::now();
  const auto [found, first] = tried_.try_emplace(host, now);
  if (first) return true;
  if (now - found->second < kBetweenAttempts) return false;
  found->second = now;
  return true;
}

void Repairs::Complete(Leader& leader, const shardops::Pair& pair, const Host& subject,
                       const std::string& text) {
  if (leader.dry_run) {
    leader.journal.Add({.kind = "would", .subject = subject.ToString(), .text = "would make it " + text});
    return;
  }
  std::string said;
  shardops::FleetOperator fleet = leader.fleet;
  fleet.report = [&](const std::string& line) { said = line; };
  const auto completed = shardops::Promote(fleet, pair.master, {});
  // Somebody else is at work there, and knows what for.
  if (absl::IsFailedPrecondition(completed.status()) &&
      completed.status().message().find("cannot begin now") != std::string::npos) {
    return;
  }
  if (!completed.ok()) said = std::string(completed.status().message());
  if (completed.ok() && (completed->follows || subject == pair.master)) {
    failed_.erase(subject);
    leader.journal.Add({.kind = "act", .subject = subject.ToString(), .text = "was made to " + text});
    return;
  }
  failed_[subject] = fmt::format("is back, and cannot be made to {}: {}", text, said);
}

void Repairs::Reopen(Leader& leader, const HostReport& report) {
  const shardops::HostState& state = *report.state;
  if (!state.read_only) return;
  // A master that is read-only though it was not started again may have been fenced by somebody, who knows
  // why.
  const auto before = started_.find(report.host);
  if (before == started_.end() || StartedMs(state) < before->second + kStartedMs || state.following) return;
  if (!IsDue(report.host)) return;
  Complete(leader, report.pair, report.host, "take writes again after its restart");
}

void Repairs::TakeBack(Leader& leader, const HostReport& report) {
  const std::string name = report.host.ToString();
  const shardops::HostState& state = *report.state;
  if (!state.read_only) {
    if (leader.dry_run) {
      if (IsDue(report.host)) {
        leader.journal.Add(
            {.kind = "would", .subject = name, .text = "would fence it: it was replaced, and takes writes"});
      }
      return;
    }
    const auto ended = shardops::Fence(leader.fleet, report.host);
    leader.journal.Add(
        {.kind = ended.ok() ? "act" : "fail",
         .subject = name,
         .text =
             ended.ok()
                 ? fmt::format("was fenced: it came back, and took writes although {} is the master now; {} "
                               "connections were ended",
                               report.pair.master.ToString(), *ended)
                 : fmt::format(
                       "came back, takes writes although {} is the master now, and cannot be fenced: {}",
                       report.pair.master.ToString(), std::string(ended.status().message())),
         .page = page::kReplaced});
    return;
  }
  if (!state.following && IsDue(report.host)) {
    Complete(leader, report.pair, report.host, fmt::format("follow {}", report.pair.master.ToString()));
  }
}

std::vector<Finding> Repairs::Handle(Leader& leader, const std::vector<HostReport>& reports) {
  for (const HostReport& report : reports) {
    if (!report.state) continue;
    if (report.master && !report.state->read_only) {
      started_.insert_or_assign(report.host, StartedMs(*report.state));
    }
    if (report.problems.empty()) {
      failed_.erase(report.host);
      tried_.erase(report.host);
      continue;
    }
    const auto record = leader.pairs.Load(report.pair);
    if (!record.ok() || !record->on) continue;
    const auto& last = record->promotion;
    if (report.master) {
      Reopen(leader, report);
    } else if (last && last->from == report.host && last->to == report.pair.master) {
      TakeBack(leader, report);
    }
  }
  std::vector<Finding> findings;
  for (const auto& [host, text] : failed_) findings.push_back({host.ToString(), text, page::kReplaced});
  return findings;
}

}  // namespace kvstore::operate
