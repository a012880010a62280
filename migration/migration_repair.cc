#include <algorithm>
#include <string>

#include "base/clock.h"
#include "migration/migration.h"

/// The repair of a migration whose record or catalog contradicts what both sides have.
namespace kvstore::migration {

absl::Status Migration::Mend(const Diagnosis& diagnosis, uint64_t above, const std::string& who) {
  // From here on no worker of before changes the record or the catalog.
  if (auto status = Claim(std::max({record().epoch, above, WallClockMs()}) + 1); !status.ok()) return status;
  for (const Diagnosis::Step& step : diagnosis.steps) {
    absl::Status status;
    const std::string event = "repair: " + step.text;
    switch (step.step) {
      case RepairStep::kRebuildRecord:
      case RepairStep::kResume:
        break;
      case RepairStep::kTurnRecord:
        status = Change(
            [&](Record& record) {
              record.on_target = diagnosis.on_target;
              record.crossed = true;
              record.complete = false;
              record.phase = Phase::kVerify;
              record.verified.clear();
              record.trusted.clear();
              record.doubt.clear();
              record.problem.clear();
              record.automatic = false;
              record.ClearWantedUnlessAbandon();
            },
            event, who);
        if (status.ok()) on_target_ = diagnosis.on_target;
        break;
      case RepairStep::kCompareAgain:
        status = Change(
            [&](Record& record) {
              // A cutover is taken over first; the comparison follows, because nothing is verified any more.
              if (record.phase != Phase::kCutover) record.phase = Phase::kVerify;
              record.crossed = record.crossed || diagnosis.crossed;
              record.verified.clear();
              record.trusted.clear();
              record.shadow.open = 0;
              record.shadow.examples.clear();
              record.problem.clear();
            },
            event, who);
        break;
      case RepairStep::kRouteCatalog:
        status = ChangeEntry([&](CatalogEntry& entry) {
          entry.spec.backend = on_target_ ? names_.target : names_.source;
          entry.spec.engine = on_target_ ? names_.target_engine : names_.source_engine;
          entry.other_backend = on_target_ ? names_.source : names_.target;
          entry.other_engine = on_target_ ? names_.source_engine : names_.target_engine;
          return absl::OkStatus();
        });
        if (status.ok()) status = Change([](Record&) {}, event, who);
        break;
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kvstore::migration
