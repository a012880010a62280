#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore_api/dataset.h"
#include "kvstore_api/options.h"

namespace kvstore::testing {

/// The specification of a dataset of rows, as simple as it can be: maps, without regard to speed.
class RowModel {
 public:
  explicit RowModel(const DatasetSpec& settings) : spec(settings) {}

  void Put(std::string_view row, std::span<const CellWrite> cells, uint64_t assigned);
  void Delete(std::string_view row, const DeleteOptions& options);
  /// Whether the condition holds at time `now`.
  bool Holds(std::string_view row, const Condition& condition, uint64_t now) const;
  /// Returns the whole row, unpaged.
  std::vector<Item> Get(std::string_view row, const std::optional<std::vector<std::string>>& columns,
                        uint32_t versions, const TimeRange& range, uint64_t now) const;
  /// Returns the rows of a range, except those that have nothing to return.
  std::vector<ScannedRow> Scan(const RowRange& range, const ScanOptions& options, uint64_t now) const;
  /// Removes the cells that are not visible.
  void Reclaim(uint64_t now);

  DatasetSpec spec;

 private:
  using Cells = std::map<uint64_t, std::string, std::greater<>>;  // newest first
  using Columns = std::map<std::string, Cells, std::less<>>;

  Cells Visible(const Cells& cells, uint64_t now) const;

  std::map<std::string, Columns, std::less<>> rows_;
};

}  // namespace kvstore::testing
