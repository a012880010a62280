#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "migration/migration.h"

/// Shadow reads while the copy is kept current (shadow_reads.h), and what follows from what they find.
namespace kvstore::migration {

absl::Status Migration::SetShadowShare(uint32_t share, std::string who) {
  return Change([share](Record& record) { record.shadow.share = share; },
                fmt::format("shadow reads: {} % of the reads", share / (ReadTaps::kAll / 100.0)),
                std::move(who));
}

absl::Status Migration::AcceptDifferences(std::string who) {
  const uint64_t open = record().shadow.open;
  if (open == 0) return absl::OkStatus();
  return Change([](Record& record) { record.shadow.open = 0; },
                fmt::format("the cutover may begin although {} units differed in shadow reads", open),
                std::move(who));
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
  if (!shadow_reads_) return absl::OkStatus();
  const ShadowReads::Counts counts = shadow_reads_->Take();
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
