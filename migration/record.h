#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backend_api/change_capture.h"
#include "backend_api/unit.h"
#include "json/json.h"
#include "migration/throttle.h"

namespace kvstore::migration {

/// The phase of a migration. docs/migrating.md says which side is the truth in which phase.
enum class Phase : uint8_t {
  kCreated,     ///< Nothing has been done yet.
  kPrepare,     ///< The target is created, and the source begins to record writes in its dirty log.
  kBackfill,    ///< All partitions are copied, and what is written meanwhile.
  kVerify,      ///< Both sides are compared.
  kReady,       ///< The copy is kept current until an operator asks for the cutover.
  kCutover,     ///< The truth moves to the other side.
  kReversible,  ///< The target is the truth, and the source is kept current.
  kFinishing,   ///< The source is being removed.
  kAborting,    ///< The target is being removed.
  kFinished,
  kAborted,
};
std::string_view Name(Phase phase);

/// An operator's request that the worker has not carried out yet.
enum class Wanted : uint8_t {
  kNothing,
  kVerify,
  kCutover,
  kReverse,
  kRollback,
  kFinish,
  kCancel,
  kResolve,  ///< Decide which side is right: Record::keep.
  kAbandon,  ///< End without the side that will never be back: Record::gone.
};
std::string_view Name(Wanted wanted);

/// A partition of the source, and the progress of its backfill.
struct Part {
  UnitRange range;
  std::string next;  ///< The key of the unit from which a copy continues; empty: the start of the range.
  bool done = false;
  uint64_t units = 0;
  uint64_t bytes = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// A line of the migration's history.
struct Event {
  uint64_t at_ms = 0;
  std::string who;  ///< The operator, "user@host", or "worker".
  std::string what;
};

/// The state of shadow reads: reads of callers that were made on both sides and compared while the copy was
/// kept current.
struct ShadowState {
  /// How many reads in ReadTaps::kAll are made on both sides; 0: none.
  uint32_t share = 0;
  uint64_t compared = 0;     ///< Units, since the last worker began, and roughly before.
  uint64_t dropped = 0;      ///< Reads that were not compared for want of time.
  uint64_t differences = 0;  ///< Units that differed although no write to them was in flight.
  /// How many of these since both sides were last found the same. A cutover is refused while there are some.
  uint64_t open = 0;
  std::vector<std::string> examples;  ///< The first of these, as ShowUnitKey shows them.
};

/// The state of a migration. It is stored with the catalog, and written before each step that it describes.
struct Record {
  std::string dataset;
  uint64_t incarnation = 0;
  std::string source;
  std::string source_engine;
  std::string target;
  std::string target_engine;
  Phase phase = Phase::kCreated;
  /// Whether the target is the truth. During a cutover the truth is still the side that the cutover leaves.
  bool on_target = false;
  Wanted wanted = Wanted::kNothing;
  bool automatic = false;  ///< Whether the migration cuts over by itself as soon as it is ready.
  bool paused = false;
  /// Whether a cutover was ever begun. From then on either side may hold writes that were acknowledged to
  /// clients.
  bool crossed = false;
  /// During a cutover: the side that it leaves was closed everywhere, with an empty log, and was restarted or
  /// replaced before the other side was opened. The other side has everything, so the cutover goes on.
  bool complete = false;
  /// The partitions that the migration covers, as MigrationControl::Extent of each side returned them.
  std::string source_extent;
  std::string target_extent;
  /// While aborting: the source serves again without recording writes, and only the removal of the target is
  /// left.
  bool released = false;
  uint64_t epoch = 0;
  std::string owner;  ///< The process of the present worker, as Catalog::self returned it.
  Limits limits;
  uint32_t threads = 4;
  uint64_t freeze_ms = 1000;  ///< How long a cutover may hold writes; then it is given up.
  std::vector<Part> parts;
  uint64_t estimated_units = 0;  ///< How many units there are to copy, roughly.
  uint64_t drained_units = 0;    ///< Units copied because they were written meanwhile.
  uint64_t backfill_ms = 0;
  // Verification.
  uint64_t passes = 0;
  uint64_t compared_units = 0;  ///< Units compared in this pass.
  uint64_t differences = 0;     ///< Units that differed, in all passes together.
  uint64_t repaired = 0;        ///< How many of those were copied again.
  std::string verified;  ///< MigrationControl::BootId of both sides when they were last found the same.
  ShadowState shadow;
  /// How the sides differ, if only an operator can say which one is right; nothing is copied until `resolve`.
  /// Empty: there is no such doubt.
  std::string doubt;
  /// MigrationControl::BootId of both sides when an operator declared the truth right.
  std::string trusted;
  std::string keep;  ///< With Wanted::kResolve: the backend that is right.
  std::string gone;  ///< With Wanted::kAbandon: the backend that will never be back.
  // How long clients waited in the last cutover.
  uint64_t write_pause_ms = 0;
  uint64_t read_pause_ms = 0;
  /// Why a step failed last, which the worker retries, or why what an operator asked for was not done: a
  /// cutover that was given up, a side that was not. Empty: neither.
  std::string problem;
  std::vector<Event> events;

  /// How many partitions are copied, and how many units and bytes.
  uint64_t PartsDone() const;
  uint64_t UnitsDone() const;
  uint64_t BytesDone() const;
  /// Adds an event; the oldest of more than 200 are dropped.
  void AddEvent(std::string who, std::string what, uint64_t now_ms);
  /// Forgets what was requested, because it is done or given up. A request to abandon a side stays.
  void ClearWantedUnlessAbandon() {
    if (wanted != Wanted::kAbandon) wanted = Wanted::kNothing;
  }
};

/// The stored form of a record, as JSON, and back. DATA_LOSS if the text does not decode; the message says
/// whether a newer version wrote it.
std::string Encode(const Record& record);
absl::StatusOr<Record> Decode(std::string_view text);

/// The record as operators see it, with the commands that are possible next.
///
/// lag  the dirty log of the side that is the truth; none if it is not known.
Json StatusJson(const Record& record, const std::optional<DirtyLag>& lag);

/// Checks that a command is possible in this phase, and beside what was requested before and is not done yet.
/// FAILED_PRECONDITION says why it is not, and which commands are.
absl::Status CheckCommand(const Record& record, std::string_view command);

}  // namespace kvstore::migration
