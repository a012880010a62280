#pragma once

#include <rocksdb/iterator.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

/// A RocksDB iterator skips deleted cells by itself, for as long as there are any. In a row whose million
/// columns were deleted one by one that takes a third of a second, during which nobody checks the caller's
/// deadline. Iterators that serve clients' calls therefore stop after a bounded number of deleted cells, and
/// their users go on explicitly.
namespace kvstore::rocks {

/// The value of ReadOptions::max_skippable_internal_keys for such iterators: about as long as two or three
/// seeks. A column that is written often leaves its deleted versions behind until a compaction of the last
/// level; a read that has met so many of them seeks to the next column. A reader that has to go on pays a
/// seek for each stop.
inline constexpr uint64_t kMaxDeletedInARow = 128;

/// Returns the key at which an iterator that is not valid has stopped among deleted cells; nullopt if it has
/// reached its end or has failed. Seek to the returned key to go on: the key itself may not be deleted.
std::optional<std::string> StoppedAt(rocksdb::Iterator& it);

/// Moves an iterator that may have stopped on until it is at a key, at its end, or has failed (see
/// Iterator::status). DEADLINE_EXCEEDED or CANCELLED if the thread's call ends first.
///
/// backwards  the iterator was moving to smaller keys.
absl::Status PassDeleted(rocksdb::Iterator& it, bool backwards = false);

}  // namespace kvstore::rocks
