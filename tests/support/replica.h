#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kvstore_api/kvstore.h"

namespace kvstore::testing {

/// A copy of a dataset, made of its changes.
class Replica {
 public:
  /// Applies all changes of a dataset after `token`, which is updated; begins with kChangesFromBegin if it
  /// is empty.
  absl::Status Follow(KVStore& store, const std::string& dataset, std::string& token, uint32_t limit = 100);

  void Apply(const Change& change);

  /// Reads the dataset as it is, by scans.
  static absl::StatusOr<Replica> Of(KVStore& store, const std::string& dataset);

  friend bool operator==(const Replica&, const Replica&) = default;

  std::map<std::pair<std::string, std::string>, std::vector<Cell>> columns;
  std::map<uint64_t, std::string> objects;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> mappings;
};

}  // namespace kvstore::testing
