#pragma once

#include <rocksdb/iterator.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

/// RocksDB passes over deleted cells by itself, and for as long as there are any: of a row whose million
/// columns were deleted one by one that is a third of a second, in which nobody looks at the caller's
/// deadline. Iterators that clients' calls use therefore stop after some.
namespace kvstore::rocks {

/// ReadOptions::max_skippable_internal_keys of such iterators: about a millisecond.
inline constexpr uint64_t kMaxDeletedInARow = 8192;

/// Where the iterator, which is at no key, has stopped among deleted cells; nullopt: it is at its end, or has
/// failed. To go on, seek to this key: it may have something that is not deleted.
std::optional<std::string> StoppedAt(rocksdb::Iterator& it);

/// Goes on with an iterator that may have stopped, until it is at a key or at its end, or has failed
/// (Iterator::status). DEADLINE_EXCEEDED or CANCELLED if the call is over before.
///
/// backwards  it was on its way to smaller keys.
absl::Status PassDeleted(rocksdb::Iterator& it, bool backwards = false);

}  // namespace kvstore::rocks
