#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

/// What a message may have so that what is built from it stays in proportion to its bytes: two bytes are
/// enough for an entry that takes a hundred in memory. Counted on the bytes, before anything is built from
/// them.
namespace kvstore::wire {

/// Entries of all lists of one message, those of lists in lists and fields that nobody knows among them.
inline constexpr size_t kMaxEntries = 1'000'000;
/// The same of what servers with one catalog tell each other: a row that moves is one unit, however many
/// cells it has.
inline constexpr size_t kMaxEndpointEntries = 2'000'000;
/// What an entry takes in memory beside its bytes, about.
inline constexpr size_t kEntryBytes = 128;

/// How many entries a message has, all its lists added up. Bytes that are no message are not told as an
/// error: the parser does that.
///
/// INVALID_ARGUMENT  a list has more than it may: writes, deletes, reads and ids kMaxBatchRows, calls
///                   kMaxCallsOfMessage, any other kMaxPageCells; or all of them together have more than
///                   kMaxEntries.
absl::StatusOr<size_t> CountEntries(const google::protobuf::Descriptor& type, std::string_view bytes);

}  // namespace kvstore::wire
