#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardops/fleet_operator.h"
#include "shardops/move_record.h"

/// Notes about hosts in ZooKeeper, ROOT/hosts/HOST: what is known of a host when it does not answer any more.
namespace kvstore::shardops {

/// The note about a host, as it was when it was loaded.
struct Note {
  nlohmann::json json = nlohmann::json::object();
  std::optional<int32_t> version;  ///< The version of its node; nullopt if there is no note.
  uint64_t changed_ms = 0;         ///< When it was written, by the clock of ZooKeeper's servers.
};

/// Loads the note about a host. UNAVAILABLE if it cannot be read. A note that does not parse counts as empty.
absl::StatusOr<Note> LoadNote(FleetOperator& fleet, const Host& host);
/// Returns the JSON of the note about a host; an empty object if there is none or it cannot be read.
nlohmann::json NoteOrEmpty(FleetOperator& fleet, const Host& host);

/// Replaces the note about a host, all but its mark of an unfinished copy (BeginCopy), the copies that were
/// left there (RecordLeftCopies), and who has fenced it (RecordFenced).
///
/// before  The note on which the caller has decided. FAILED_PRECONDITION, and nothing is written, if the note
///         has changed since. If null, the note is replaced whatever it says.
absl::Status WriteNote(FleetOperator& fleet, const Host& host, const nlohmann::json& note,
                       const Note* before = nullptr);

/// Marks in the note that a copy of `master` is being loaded into a host, so that nothing promotes that host
/// before it has all data. The mark remains if the process dies in the middle of the copy. ABORTED if the
/// operation `held` is not held any more.
absl::Status BeginCopy(FleetOperator& fleet, const Held& held, const Host& host, const Host& master);
/// Removes the mark that BeginCopy has set for the same operation: the copy is complete. ABORTED as of
/// BeginCopy.
absl::Status EndCopy(FleetOperator& fleet, const Held& held, const Host& host);
/// FAILED_PRECONDITION if a copy to that host was begun and has not ended; the message names the command that
/// begins it again. UNAVAILABLE if the note cannot be read.
absl::Status CheckCopyEnded(FleetOperator& fleet, const Host& host);

/// Records in the note that a move of these shards to a host was given up while the host did not answer, so
/// that it may still have copies of them. ABORTED if the operation `held` is not held any more.
absl::Status RecordLeftCopies(FleetOperator& fleet, const Held& held, const Host& host,
                              const MoveRange& shards);
/// Returns the shards that RecordLeftCopies has recorded for a host; none if its note cannot be read.
std::vector<MoveRange> LeftCopies(FleetOperator& fleet, const Host& host);
/// Removes what RecordLeftCopies has recorded of these shards: another move of them to that host has begun,
/// which has found none of them there. ABORTED if the operation `held` is not held any more.
absl::Status ForgetLeftCopies(FleetOperator& fleet, const Held& held, const Host& host,
                              const MoveRange& shards);

/// Records in the note that whoever operates the fleet has fenced a host, and that nobody is to open it of
/// his own accord, also not when it was started again. UNAVAILABLE if the note cannot be written.
absl::Status RecordFenced(FleetOperator& fleet, const Host& host);
/// Removes that from the note, because the host is to take writes again; unless somebody has fenced it since
/// the note was as in `known`.
absl::Status ForgetFenced(FleetOperator& fleet, const Host& host, const Note& known);
/// Returns who has fenced a host, by its note; empty if nobody has since it took writes.
std::string FencedBy(const Note& note);
/// Whether two notes about a host tell of the same fence, or both of none.
bool HaveSameFence(const Note& one, const Note& other);
/// Returns the note without that.
Note WithoutFenced(Note note);

}  // namespace kvstore::shardops
