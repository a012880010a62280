#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/json.h"
#include "kvstore_api/migration_endpoint.h"
#include "migration/throttle.h"

namespace kvstore::migration {

/// Where a migration stands. Which side is the truth: docs/migrating.md.
enum class Phase : uint8_t {
  kCreated,     ///< Nothing was done.
  kPrepare,     ///< The target is made, and writes to the truth begin to be recorded.
  kBackfill,    ///< Partitions are copied, what is written meanwhile too.
  kVerify,      ///< Both sides are compared.
  kReady,       ///< The copy is kept current; waits for the cutover.
  kCutover,     ///< The truth changes sides.
  kReversible,  ///< The target is the truth, the source is kept current.
  kFinishing,   ///< The source goes.
  kAborting,    ///< The target goes.
  kFinished,
  kAborted,
};
std::string_view Name(Phase phase);

/// What an operator has asked for and was not done yet.
enum class Wanted : uint8_t {
  kNothing,
  kVerify,
  kCutover,
  kReverse,
  kRollback,
  kFinish,
  kCancel,
  kResolve,  ///< Record::keep says which side is right.
  kAbandon,  ///< Record::gone says which side will never be back.
};
std::string_view Name(Wanted wanted);

/// A partition of the source.
struct Part {
  UnitRange range;
  std::string next;  ///< The unit to go on with, in the order of keys; empty: its start.
  bool done = false;
  uint64_t units = 0;
  uint64_t bytes = 0;
};

/// A line of what happened.
struct Event {
  uint64_t at_ms = 0;
  std::string who;  ///< "user@host", or the worker.
  std::string what;
};

/// All that is known of a migration: kept in the catalog, written before each step that it describes.
struct Record {
  std::string dataset;
  uint64_t incarnation = 0;
  std::string source;
  std::string source_engine;
  std::string target;
  std::string target_engine;
  Phase phase = Phase::kCreated;
  /// Which side is the truth; during a cutover the one that it leaves.
  bool on_target = false;
  Wanted wanted = Wanted::kNothing;
  bool automatic = false;  ///< Cuts over as soon as it is ready.
  bool paused = false;
  /// A cutover was begun: either side may have held the truth, and have what clients were told is written.
  bool crossed = false;
  /// The partitions that it works on, as MigrationEndpoint::Extent of each side gave them.
  std::string source_extent;
  std::string target_extent;
  /// The side that was given up serves already, and records nothing more; what is left is to remove the other
  /// one.
  bool released = false;
  uint64_t epoch = 0;
  std::string owner;  ///< The process whose worker is at it.
  Limits limits;
  uint32_t threads = 4;
  uint64_t freeze_ms = 1000;  ///< How long writes may be held at a cutover, before it is given up.
  std::vector<Part> parts;
  uint64_t estimated_units = 0;  ///< About so many are there to copy.
  uint64_t drained_units = 0;    ///< Copied because they were written meanwhile.
  uint64_t backfill_ms = 0;
  // Of verification.
  uint64_t passes = 0;
  uint64_t compared_units = 0;  ///< In this pass.
  uint64_t differences = 0;     ///< Found in all passes, ...
  uint64_t repaired = 0;        ///< ... and copied again.
  std::string verified;         ///< MigrationEndpoint::Boot of both sides when they were last found the same.
  /// Both sides differ, and nobody but an operator can say which one is right: what was found. Nothing is
  /// copied until `resolve`. Empty: there is no such doubt.
  std::string doubt;
  /// MigrationEndpoint::Boot of both sides, of which an operator has said that the truth is right.
  std::string trusted;
  std::string keep;  ///< With Wanted::kResolve: the backend that is right.
  std::string gone;  ///< With Wanted::kAbandon: the backend that will never be back.
  // Of the last cutover.
  uint64_t write_pause_ms = 0;
  uint64_t read_pause_ms = 0;
  std::string problem;  ///< What it waits for, or why a step failed last.
  std::vector<Event> events;

  /// Partitions that are copied, and their units and bytes.
  uint64_t PartsDone() const;
  uint64_t UnitsDone() const;
  uint64_t BytesDone() const;
  void Add(std::string who, std::string what, uint64_t now_ms);
};

std::string Encode(const Record& record);
/// DATA_LOSS if it does not decode.
absl::StatusOr<Record> Decode(std::string_view text);

/// The record as users see it, with what may be asked for next; `lag` of the side that is the truth, if
/// known.
Json StatusJson(const Record& record, const std::optional<DirtyLag>& lag);

/// Checks that a command may be given in this phase: FAILED_PRECONDITION says why not.
absl::Status CheckCommand(const Record& record, std::string_view command);

}  // namespace kvstore::migration
