#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "base/clock.h"
#include "migration/migration.h"

/// Shadow reads while the copy is kept current (shadow_reads.h), and what follows from what they find.
namespace kvstore::migration {

absl::Status Migration::SetShadowShare(uint32_t share, std::string who) {
  return Change([share](Record& record) { record.shadow.share = share; },
                fmt::format("shadow reads: {} % of the reads", share / (ReadTaps::kAll / 100.0)),
                std::move(who));
}

absl::Status Migration::RequestCutoverAllTheSame(std::string who) {
  std::string event;
  const bool before = accepts_differences_;
  const absl::Status status = ChangeOrRefuse(
      [&](Record& record) -> absl::Status {
        const uint64_t open = std::exchange(record.shadow.open, 0);
        if (auto possible = CheckCommand(record, Name(Wanted::kCutover)); !possible.ok()) return possible;
        record.wanted = Wanted::kCutover;
        event = "cutover asked for";
        if (open > 0) event += fmt::format(", although {} units differed in shadow reads", open);
        record.AddEvent(who, event, WallClockMs());
        // Also those that are found until the cutover begins.
        accepts_differences_ = true;
        return absl::OkStatus();
      },
      /*event=*/"", who);
  if (status.ok()) {
    spdlog::info("migration of '{}': {} ({})", names_.dataset, event, who);
  } else {
    accepts_differences_ = before;
  }
  wake_run_.notify_all();
  return status;
}

absl::Status Migration::FollowShadowReads() {
  const Record now = record();
  // The copy is compared only while it is the copy of a truth that clients have always read from.
  const uint32_t share = now.phase == Phase::kReady && !now.paused ? now.shadow.share : 0;
  if (share != shadow_share_ || (share > 0) != (shadow_reads_ != nullptr)) {
    shadow_reads_.reset();
    shadow_share_ = share;
    if (share > 0) {
      shadow_reads_ = std::make_unique<ShadowReads>(keeper_.read_taps(), names_.dataset, share, *copier_);
    }
  }
  return shadow_reads_ ? CountShadowReads(shadow_reads_->Take()) : absl::OkStatus();
}

absl::Status Migration::EndShadowReads() {
  if (!shadow_reads_) return absl::OkStatus();
  shadow_reads_->Stop();
  const ShadowReads::Counts counts = shadow_reads_->Take();
  shadow_reads_.reset();
  return CountShadowReads(counts);
}

absl::Status Migration::BeginCutover(Wanted asked, const std::string& to) {
  // The results of the last reads count, too.
  if (auto status = EndShadowReads(); !status.ok()) return status;
  const bool accepted = accepts_differences_.exchange(false);
  std::string refusal;
  absl::Status status = ActOnRequest(
      asked,
      [&](Record& record) {
        if (record.phase == Phase::kReady && record.shadow.open > 0 && !accepted) {
          Record as_asked = record;
          as_asked.wanted = Wanted::kNothing;
          refusal = std::string(CheckCommand(as_asked, "cutover").message());
          record.problem = "the cutover did not begin: " + refusal;
          record.automatic = false;
          record.ClearWantedUnlessAbandon();
          record.AddEvent("worker", record.problem, WallClockMs());
          return;
        }
        record.phase = Phase::kCutover;
        record.AddEvent("worker", fmt::format("cutover to '{}' begins", to), WallClockMs());
      },
      "");
  if (!status.ok()) return status;
  spdlog::info(
      "migration of '{}': {}", names_.dataset,
      refusal.empty() ? fmt::format("cutover to '{}' begins", to) : "the cutover did not begin: " + refusal);
  return absl::OkStatus();
}

absl::Status Migration::CountShadowReads(const ShadowReads::Counts& counts) {
  std::vector<std::string> shown;
  for (const std::string& key : counts.different) {
    if (shown.size() < Verifier::kExamples) shown.push_back(ShowUnitKey(spec_.shape, key));
  }
  {
    // Should the catalog not answer, this is stored with the next change.
    const DeadlineMutex::Guard changing = changes_mutex_.AcquireWithoutDeadline();
    const MutexLock lock(mutex_);
    ShadowState& shadow = record_.shadow;
    shadow.compared += counts.compared;
    shadow.dropped += counts.dropped;
    shadow.differences += counts.different.size();
    shadow.open += counts.different.size();
    for (const std::string& unit : shown) {
      if (shadow.examples.size() < Verifier::kExamples) shadow.examples.push_back(unit);
    }
  }
  if (counts.different.empty()) return absl::OkStatus();
  return Change(
      [](Record&) {},
      fmt::format("shadow reads: {} units differ on the two sides, although nobody was writing to them; for "
                  "example {}",
                  counts.different.size(), fmt::join(shown, ", ")));
}

}  // namespace kvstore::migration
