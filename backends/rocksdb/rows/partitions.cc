#include "backends/rocksdb/rows/partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "backends/rocksdb/engine/file_splits.h"
#include "backends/rocksdb/engine/status.h"
#include "backends/rocksdb/rows/cell_key.h"
#include "base/big_endian.h"

namespace kvstore::rocks {

absl::StatusOr<std::vector<Partition>> PartitionRows(Engine& engine, const Family& family, size_t wanted) {
  const auto row_of = [](std::string_view stored) -> std::optional<std::string> {
    const auto key = ParseCellKey(stored);
    std::string row;
    if (!key || !Decode(key->row, row)) return std::nullopt;  // the key is the bound of a range tombstone
    return row;
  };
  std::vector<Partition> partitions(1);
  for (std::string& row : SplitByFiles(engine, family, wanted, row_of)) {
    partitions.back().range.end = row;
    partitions.push_back({.name = "", .range = {.start = std::move(row)}});
  }
  for (size_t i = 0; i < partitions.size(); ++i)
    partitions[i].name = fmt::format("{}/{}", i + 1, partitions.size());
  return partitions;
}

absl::StatusOr<std::vector<std::string>> SplitRows(Engine& engine, const Family& family, size_t wanted) {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> it(engine.db().NewIterator(options, family.handle));
  it->SeekToLast();
  const std::string last = it->Valid() ? it->key().ToString() : "";
  it->SeekToFirst();
  const std::string first = it->Valid() ? it->key().ToString() : "";
  std::vector<std::string> starts;
  size_t common = 0;
  while (common < std::min(first.size(), last.size()) && first[common] == last[common]) ++common;
  // The eight bytes after the common prefix, as a number.
  const auto number = [&](std::string_view key) {
    std::string bytes(key.substr(common, sizeof(uint64_t)));
    bytes.resize(sizeof(uint64_t), '\0');
    return ReadBigEndian<uint64_t>(bytes);
  };
  const uint64_t low = number(first);
  const uint64_t step = (number(last) - low) / wanted;
  for (size_t i = 1; step > 0 && i < wanted; ++i) {
    std::string guess = first.substr(0, common);
    AppendBigEndian(guess, low + step * i);
    it->Seek(guess);
    if (!it->Valid()) break;
    const std::string_view found = it->key().ToStringView();
    const auto row = EncodedSize(found);
    if (!row) return absl::DataLossError("a stored key is not that of a cell");
    std::string start(found.substr(0, *row));
    if (start > first && (starts.empty() || start > starts.back())) starts.push_back(std::move(start));
  }
  if (!it->status().ok()) return ToStatus(it->status(), "split rows");
  return starts;
}

}  // namespace kvstore::rocks
