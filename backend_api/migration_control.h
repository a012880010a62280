#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvstore {

/// The state of a dataset in one backend. Values are stored: never renumber.
enum class EndpointState : uint8_t {
  kAbsent = 0,     ///< The dataset does not exist here.
  kImporting = 1,  ///< A migration's worker fills the dataset; clients are refused.
  kServing = 2,    ///< This is the truth: clients read and write here.
  kFrozen = 3,     ///< Still the truth: reads are served, writes are refused.
  kMoved = 4,      ///< The truth is elsewhere: clients are refused; the worker may keep this copy current.
};
/// "importing"
std::string_view Name(EndpointState state);

/// Whether the protocol allows a transition from one state to another. The same on all backends; to stay in a
/// state is allowed too.
///
/// captures  whether clients' writes are recorded in the state `from`. A dataset must not be frozen
///           without that, because the other side would never learn of the last writes.
bool MayTransition(EndpointState from, bool captures, EndpointState to);

/// The state of all partitions of a dataset in one backend.
struct EndpointStatus {
  std::map<EndpointState, uint32_t> partitions;  ///< How many partitions are in each state.
  bool capture = false;  ///< Writes are recorded on all partitions that are not absent.
  uint64_t epoch = 0;    ///< The highest of all partitions.
  /// Whether all partitions are in this state.
  bool All(EndpointState state) const { return partitions.size() == 1 && partitions.begin()->first == state; }
  bool Any(EndpointState state) const { return partitions.contains(state); }
};

/// Decides who may write to a dataset in one backend: clients, the worker of a migration, or nobody.
/// Thread-safe, except for Limit.
///
/// A worker has an epoch, which every change names. Once a later worker has raised the epoch, changes of the
/// earlier one are refused with ABORTED. The check and the change are atomic, so that a worker that was
/// thought dead does no harm.
///
/// The backend itself refuses clients' calls that the state forbids (outcome.h), atomically with what the
/// calls do. A partition is whatever the backend changes at once: a shard, or the whole dataset.
class MigrationControl {
 public:
  virtual ~MigrationControl() = default;

  /// Returns the partitions that there are now, as text for Limit; empty if they never change. Makes no
  /// network call: it is what this process knows.
  [[nodiscard]] virtual absl::StatusOr<std::string> Extent() = 0;
  /// Restricts all other calls of the endpoint to these partitions, so that partitions that appear later are
  /// left alone until a worker includes them, between two steps. Must not run beside other calls.
  /// INVALID_ARGUMENT for a text that Extent cannot have returned.
  ///
  /// extent  what Extent returned, to this worker or to an earlier one. Empty, or never called: all
  ///         partitions that there are at each moment.
  [[nodiscard]] virtual absl::Status Limit(const std::string& extent) = 0;

  /// Returns the states of all partitions. UNAVAILABLE if a host cannot be reached.
  [[nodiscard]] virtual absl::StatusOr<EndpointStatus> Status() = 0;
  /// Returns a text that changes when acknowledged writes may have been lost: when a host was restarted, or
  /// replaced by another one. Cheap: a round trip to each host.
  [[nodiscard]] virtual absl::StatusOr<std::string> BootId() = 0;
  /// Makes this the epoch of all partitions, also of absent ones. ABORTED if one of them has it already, or a
  /// later one.
  [[nodiscard]] virtual absl::Status RaiseEpoch(uint64_t epoch) = 0;

  /// Brings all partitions to a state; those that are in it already stay. When this returns OK, no client can
  /// still commit what the state forbids, and, if `capture` is set, everything that is committed from now on
  /// is recorded. If it fails halfway, repeat it, or undo it by a transition to the state before.
  /// FAILED_PRECONDITION if MayTransition forbids it.
  ///
  /// capture  Clients' writes are recorded in the dirty log (change_capture.h), atomically with the write.
  ///          For kImporting and kMoved it only ensures that everything is ready for that, before a
  ///          transition to kServing. Without it the log is removed, and after a transition to kServing or
  ///          kAbsent nothing of the migration is left.
  [[nodiscard]] virtual absl::Status TransitionTo(uint64_t epoch, EndpointState state, bool capture) = 0;

  /// TransitionTo for partitions that may be in any state, because they appeared since the migration began,
  /// or because their host came back with older data. Each is brought to `state` by a safe path; absent ones
  /// are created, empty. With kMoved, partitions that serve are frozen first, and keep the entries of their
  /// log; partitions that are importing stay so, which is as good.
  ///
  /// state  kImporting, kServing or kMoved.
  [[nodiscard]] virtual absl::Status Reassert(uint64_t epoch, EndpointState state, bool capture) = 0;
};

}  // namespace kvstore
