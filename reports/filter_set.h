#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "reports/chunk_types.h"
#include "reports/metadata.h"
#include "reports/query.h"

namespace kvstore::reports {

/// A list of numbers, of which up to eight need no allocation.
using NumberList = absl::InlinedVector<uint32_t, 8>;

/// The filters of a query, with the IDs of their values, and the keys that it groups by. Thread-safe once
/// made.
class FilterSet {
 public:
  /// INVALID_ARGUMENT for a segment key that the report does not have.
  static absl::StatusOr<FilterSet> Make(const Metadata& metadata, const ReportInfo& info, const Query& query);

  size_t size() const { return filters_.size(); }
  /// The numbers of the keys of group_by.
  std::span<const uint32_t> group_keys() const { return {group_keys_.data(), group_keys_.size()}; }

  /// The numbers of the keys that a filter looks at, or that series are grouped by; in any order.
  std::vector<uint32_t> KeysUsed() const;

  /// False only if no filter can match any series of a chunk with this directory.
  bool MayMatch(const ChunkDirectory& directory) const;
  /// Appends the indexes of the filters that a series matches.
  void Match(std::span<const uint32_t> segments, NumberList& matched) const;
  /// Replaces `group` with the IDs of a series for group_keys(), in their order.
  void Group(std::span<const uint32_t> segments, NumberList& group) const;

 private:
  struct KeyFilter {
    uint32_t key = 0;
    std::vector<uint32_t> ids;  // ascending
  };
  using Filter = std::vector<KeyFilter>;  // all must match

  /// Tells which filters match an ID of one segment key: each filter has a bit.
  struct KeyIndex {
    uint32_t key = 0;
    std::vector<uint64_t> any;                                   // those that do not look at the key
    absl::flat_hash_map<uint32_t, std::vector<uint64_t>> by_id;  // those and the ones that name the ID
  };
  void IndexFilters();

  std::vector<Filter> filters_;
  std::vector<KeyIndex> indexes_;  // of the keys that any filter looks at
  NumberList group_keys_;
};

}  // namespace kvstore::reports
