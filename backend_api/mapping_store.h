#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore_api/types.h"

namespace kvstore {

/// Which of one ID's entries to list.
struct MappingQuery {
  bool descending = false;
  uint32_t limit = 0;
  uint64_t offset = 0;
  std::optional<MappingEntry> after;  ///< Start after this entry, in the direction of the listing.
};

struct MappingList {
  std::vector<MappingEntry> entries;
  bool more = false;  ///< Entries remain after the last one.
};

/// The place of an entry in a scan. Entries are ordered by (from, to).
struct MappingPosition {
  uint64_t from = 0;
  uint64_t to = 0;
  friend auto operator<=>(const MappingPosition&, const MappingPosition&) = default;
};

/// A page of a scan.
struct MappingScanPage {
  std::vector<ScannedMapping> entries;
  std::optional<MappingPosition> next;  ///< The first place that was not looked at; none at the end.
};

/// The mappings of one dataset in a backend. Thread-safe. The router has checked all arguments.
class MappingStore {
 public:
  virtual ~MappingStore() = default;

  /// Adds (from, to), or changes its sequence. Without one the sequence is the store's time in ms.
  [[nodiscard]] virtual absl::Status Add(uint64_t from, uint64_t to, std::optional<uint64_t> sequence) = 0;
  /// Returns whether there was such an entry.
  [[nodiscard]] virtual absl::StatusOr<bool> Remove(uint64_t from, uint64_t to) = 0;
  [[nodiscard]] virtual absl::StatusOr<MappingList> List(uint64_t from, const MappingQuery& query) = 0;
  [[nodiscard]] virtual absl::StatusOr<uint64_t> Count(uint64_t from) = 0;

  /// Returns up to `limit` entries from `start` on, as long as their `from` is below `end`. As
  /// ObjectStore::Scan.
  [[nodiscard]] virtual absl::StatusOr<MappingScanPage> Scan(const MappingPosition& start, uint64_t end,
                                                             uint32_t limit) = 0;
  /// As ObjectStore::Partitions.
  [[nodiscard]] virtual absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) = 0;
};

}  // namespace kvstore
