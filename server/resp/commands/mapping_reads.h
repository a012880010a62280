#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/resp/commands/command.h"

/// Reads of a mapping for the commands on sorted sets. The API lists a mapping's entries from its ends, or
/// from a marker on; these functions make markers for other places, too.
namespace kvstore::server::resp {

/// The list of one ID.
struct MappingOf {
  std::string_view dataset;
  uint64_t from = 0;
  uint64_t incarnation = 0;  ///< The dataset's incarnation.
};

/// Finds the dataset of a key "dataset:id". An error in Redis' words if it holds no mappings.
absl::StatusOr<MappingOf> FindMapping(Router& router, std::string_view key);

/// Returns the sequence of an entry; nothing if there is none.
absl::StatusOr<std::optional<uint64_t>> FindSequence(Router& router, const MappingOf& mapping, uint64_t to);

/// Which entries to list, in which order.
struct EntriesWanted {
  bool descending = false;
  uint64_t min = 0;                                       ///< The lowest sequence.
  uint64_t max = kMaxTimestamp;                           ///< The highest one, at least `min`.
  uint64_t offset = 0;                                    ///< So many are left out first.
  uint64_t count = std::numeric_limits<uint64_t>::max();  ///< At most so many.
};

/// Lists entries. TooLargeAnswerError if there are too many; TooLongHereError if `here` and this may take
/// long.
absl::StatusOr<std::vector<MappingEntry>> ListEntries(Router& router, const MappingOf& mapping,
                                                      const EntriesWanted& wanted, bool here);

}  // namespace kvstore::server::resp
