#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"

/// Limits on the entries of a message, so that what is built from it stays in proportion to its bytes: two
/// bytes are enough for an entry that takes a hundred in memory. Entries are counted on the encoded bytes,
/// before anything is built from them.
namespace kvstore::wire {

/// Entries of all lists of one message, nested lists and unknown fields included.
inline constexpr size_t kMaxEntries = 1'000'000;
/// The same for messages between servers that share a catalog: a migrating row is one unit, however many
/// cells it has.
inline constexpr size_t kMaxEndpointEntries = 2'000'000;
/// So many numbers in a column of a message of reports.proto count as one entry.
inline constexpr size_t kNumbersOfEntry = 4;
/// Memory that an entry takes in addition to its bytes, about.
inline constexpr size_t kEntryBytes = 128;

/// Returns how many entries all lists of a message have together. Bytes that are not a message are no error
/// here: the parser reports them.
///
/// INVALID_ARGUMENT  a list has more entries than it may: writes, deletes, reads and ids kMaxBatchRows, calls
///                   kMaxCallsOfMessage, any other kMaxPageCells; or all of them together have more than
///                   kMaxEntries (messages of endpoint.proto: kMaxEndpointEntries).
absl::StatusOr<size_t> CountEntries(const google::protobuf::Descriptor& type, std::string_view bytes);

}  // namespace kvstore::wire
