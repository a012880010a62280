#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/shard_space.h"
#include "shardops/channel.h"
#include "shardops/fleet_operator.h"
#include "shardops/maps.h"

/// The record of a move of shards, in ZooKeeper: ROOT/moves/NAME.
namespace kvstore::shardops {

/// The shards first..last, both included, of one of the two spaces.
struct MoveRange {
  ShardSpace space = ShardSpace::kId;
  uint32_t first = 0;
  uint32_t last = 0;

  /// "db 0-255", "mod 0-7".
  std::string ToString() const;
  bool Overlaps(const MoveRange& other) const;
  bool Contains(uint32_t shard) const { return first <= shard && shard <= last; }
  /// Returns the names of the shards' databases.
  std::vector<std::string> Databases() const;
  friend auto operator<=>(const MoveRange&, const MoveRange&) = default;
};

/// INVALID_ARGUMENT, with the limit that was passed, if a range is reversed, or has shards that cannot be.
absl::Status CheckRange(const MoveRange& range);

enum class MoveState : uint8_t {
  kCopying,    ///< The target has a part of a copy; a copy that was stopped is begun again.
  kFollowing,  ///< The copy is complete, and a channel applies what changed since.
  kSwitching,  ///< Source and copy were compared and are equal. The shards are being switched, in groups.
  kMoved,      ///< All shards are on the new pair. The old pair still has their old tables.
};
/// Returns "copying", "following", ...
std::string_view Name(MoveState state);

struct MoveRecord {
  MoveRange range;
  Pair from;
  Pair to;
  MoveState state = MoveState::kCopying;
  Position position;  ///< The position of the copy in the binary log of from.master.
  /// The pairs that still have old tables of these shards, from this and earlier moves.
  std::vector<Pair> old_homes;
  uint64_t began_ms = 0;
  int32_t version = -1;  ///< The version of the node; -1 if there is none yet.
};

/// Returns the name that a move of these shards has in the ledger.
std::string OperationName(const MoveRange& range);
/// Returns the move as an operation of the ledger. It outlives its process: it ends when all shards have
/// moved, or the move is cancelled, by whichever process.
Operation AsOperation(const MoveRecord& move);
/// A record that does not decode: it is damaged, or a newer version wrote it.
struct DamagedMove {
  std::string path;                ///< The node in ZooKeeper.
  std::optional<MoveRange> range;  ///< From the node's name; none if the name does not say it.
  std::string why;
  int32_t version = -1;  ///< The version of the node.
};

/// The records of all moves that are under way, or have moved and are not finished.
struct Moves {
  std::vector<MoveRecord> known;  ///< By range, ascending.
  std::vector<DamagedMove> damaged;

  /// FAILED_PRECONDITION if a damaged record may be the one of a move of some of these shards.
  absl::Status CheckRange(const MoveRange& range) const;
  /// FAILED_PRECONDITION if a damaged record may be the one of a move from or to this pair: by the maps the
  /// pair has shards of its range, or the range is not known. The pair that shards of a damaged record are on
  /// their way to is not known before the first of them has moved; the ledger has it (AsOperation).
  absl::Status CheckPair(const Maps& maps, const Pair& pair) const;
};
/// Loads all records. One that is damaged does not keep others from being loaded.
absl::StatusOr<Moves> LoadMoves(FleetOperator& fleet);
/// Says which record is damaged, why, and where the operator reads on.
std::string ToString(const DamagedMove& move);
/// Saves the record, and increments its version. ABORTED if another process has changed it meanwhile.
absl::Status SaveMove(FleetOperator& fleet, MoveRecord& move);
/// Removes the record of a move and saves those of its parts, which have none yet, in one step: old tables
/// that no record names could not be removed by any command. ABORTED, and nothing is changed, if another
/// process has changed the move's record, or there is a record of such a part.
absl::Status ReplaceMove(FleetOperator& fleet, const MoveRecord& move, std::span<const MoveRecord> parts);
/// Returns a move that is under way and uses one of the pair's hosts; null if there is none.
const MoveRecord* FindMove(const std::vector<MoveRecord>& moves, const Pair& pair);

}  // namespace kvstore::shardops
