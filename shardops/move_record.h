#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardops/channel.h"
#include "shardops/promote.h"

/// What is written down of a move of shards, in ZooKeeper: ROOT/moves/NAME.
namespace kvstore::shardops {

/// Shards of one of the two spaces.
struct MoveRange {
  bool mod = false;
  uint32_t first = 0;
  uint32_t last = 0;

  /// "db 0-255", "mod 0-7".
  std::string ToString() const;
  bool Overlaps(const MoveRange& other) const;
  bool Contains(uint32_t shard) const { return first <= shard && shard <= last; }
  /// Names of their databases.
  std::vector<std::string> Databases() const;
  friend auto operator<=>(const MoveRange&, const MoveRange&) = default;
};

enum class MoveState : uint8_t {
  kCopying,    ///< The target has part of a copy, which is of no use if it was stopped.
  kFollowing,  ///< The copy is whole, and a channel brings what changes since.
  kSwitching,  ///< It was compared, and is the same. Shards change their homes, some at a time.
  kMoved,      ///< All have. The old copies are still there.
};
/// "copying", ...
std::string_view Name(MoveState state);

struct MoveRecord {
  MoveRange range;
  Pair from;
  Pair to;
  MoveState state = MoveState::kCopying;
  Position position;         ///< Of the copy, in the log of from.master.
  std::vector<Pair> leaves;  ///< Pairs that keep old copies: of this move, and of one before there and back.
  uint64_t began_ms = 0;
  int32_t version = -1;  ///< Of the node; -1: there is none yet.
};

/// What a move of these is called in the ledger.
std::string OperationOf(const MoveRange& range);
/// The move in the ledger: until it is finished or cancelled, by whichever process.
Operation AsOperation(const MoveRecord& move);
/// All that are under way, or moved and not finished.
absl::StatusOr<std::vector<MoveRecord>> LoadMoves(Fleet& fleet);
/// Writes it down, and counts its version up. ABORTED if somebody else has changed it meanwhile.
absl::Status SaveMove(Fleet& fleet, MoveRecord& move);
absl::Status RemoveMove(Fleet& fleet, const MoveRecord& move);
/// One of these that is under way and reads or writes one of the pair's hosts; null: none.
const MoveRecord* FindMove(const std::vector<MoveRecord>& moves, const Pair& pair);

}  // namespace kvstore::shardops
