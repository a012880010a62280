#include "backends/rocksdb/partitions.h"

#include <fmt/format.h>
#include <rocksdb/metadata.h>

#include <map>

#include "backends/rocksdb/cell_key.h"

namespace kvstore::rocks {

absl::StatusOr<std::vector<Partition>> PartitionRows(Engine& engine, const Family& family, size_t wanted) {
  rocksdb::ColumnFamilyMetaData metadata;
  engine.db().GetColumnFamilyMetaData(family.handle, &metadata);
  std::map<std::string, uint64_t> bytes_from;  // row at which a file begins -> size of the file
  uint64_t total = 0;
  for (const auto& level : metadata.levels) {
    for (const auto& file : level.files) {
      const auto key = ParseCellKey(file.smallestkey);
      std::string row;
      if (!key || !Decode(key->row, row)) continue;  // of a range tombstone
      bytes_from[row] += file.size;
      total += file.size;
    }
  }
  std::vector<Partition> partitions(1);
  uint64_t seen = 0;
  for (const auto& [row, bytes] : bytes_from) {
    if (seen > 0 && partitions.size() < wanted && seen >= total * partitions.size() / wanted) {
      partitions.back().range.end = row;
      partitions.push_back({.range = {.start = row}});
    }
    seen += bytes;
  }
  for (size_t i = 0; i < partitions.size(); ++i)
    partitions[i].name = fmt::format("{}/{}", i + 1, partitions.size());
  return partitions;
}

}  // namespace kvstore::rocks
