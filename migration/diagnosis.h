#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "backend_api/change_capture.h"
#include "backend_api/migration_control.h"
#include "catalog/catalog.h"
#include "json/json.h"
#include "migration/record.h"

/// How a migration that died badly stands, and what would mend it: `kv migrate repair`.
namespace kvstore::migration {

/// The facts that one side of a migration tells of itself.
struct SideFacts {
  std::string backend;
  std::string engine;
  /// Why the side could not be asked; OK: it answered, and `status` and `boot` are known.
  absl::Status problem;
  EndpointStatus status;
  std::string boot;             ///< MigrationControl::BootId
  std::optional<DirtyLag> lag;  ///< The lag of its dirty log.
  absl::Status log_problem;     ///< Why its dirty log could not be read; OK where it need not have one.
};

/// All that is known of a migration without changing anything.
struct RepairFacts {
  std::string dataset;
  absl::Status record_problem;  ///< NOT_FOUND: there is no record; DATA_LOSS: it cannot be read.
  Record record;                ///< If record_problem is OK.
  int64_t version =
      -1;  ///< The version of the stored record; -1: there is none, or a worker of this process has it.
  absl::Status entry_problem;  ///< Why the catalog's entry of the dataset is not known.
  CatalogEntry entry;          ///< If entry_problem is OK.
  bool runs_here = false;      ///< A worker of this process runs the migration.
  bool runs_elsewhere =
      false;  ///< The process that the record names as the worker's lives, and is another one.
  /// The sides as the record names them. Without a record: as the catalog names them, first the backend that
  /// clients are routed to.
  SideFacts source;
  SideFacts target;
};

/// The steps of a repair. Each loses no acknowledged write, and the later ones may follow earlier ones.
enum class RepairStep : uint8_t {
  kRebuildRecord,  ///< Store a record made of what both sides and the catalog say: Diagnosis::rebuilt.
  kTurnRecord,     ///< Make the record say that the other side is the truth, as both sides do.
  kCompareAgain,   ///< Return to the comparison, whose result from before does not count any more.
  kRouteCatalog,   ///< Make the catalog name the sides as the record does.
  kResume,         ///< Let a worker of this process take the migration over.
};
std::string_view Name(RepairStep step);

struct Diagnosis {
  /// The backend that has all acknowledged writes, as far as can be told; empty: that cannot be told. With
  /// its engine, if both sides are the same backend.
  std::string truth;
  std::vector<std::string> findings;  ///< The faults, each a sentence.
  std::vector<std::string> notes;     ///< Facts that explain the findings, but are not faults themselves.
  struct Step {
    RepairStep step = RepairStep::kResume;
    std::string text;  ///< The step's effect, as a sentence that begins with a verb.
  };
  std::vector<Step> steps;  ///< The steps that mend it, in this order.
  struct Decision {
    std::string why;
    std::string command;  ///< The command by which a person decides.
  };
  std::vector<Decision> decisions;  ///< The decisions that only a person can make.
  Record rebuilt;                   ///< With kRebuildRecord.
  bool on_target = false;           ///< With kTurnRecord: whether the target is the truth.
  /// With kCompareAgain: what both sides have shows that a cutover was begun, whatever the record says.
  bool crossed = false;

  bool Has(RepairStep step) const;
};

/// Says how a migration stands. Depends on the facts alone.
Diagnosis Diagnose(const RepairFacts& facts);

/// The facts and the diagnosis, as operators see them.
Json ToJson(const RepairFacts& facts, const Diagnosis& diagnosis);

}  // namespace kvstore::migration
