#include "backends/rocksdb/engine/file_splits.h"

#include <rocksdb/metadata.h>

#include <cstdint>
#include <map>
#include <utility>

namespace kvstore::rocks {

std::vector<std::string> SplitByFiles(
    Engine& engine, const Family& family, size_t wanted,
    const std::function<std::optional<std::string>(std::string_view key)>& place_of) {
  rocksdb::ColumnFamilyMetaData metadata;
  engine.db().GetColumnFamilyMetaData(family.handle, &metadata);
  std::map<std::string, uint64_t> bytes_from;  // place at which a file begins -> size of the file
  uint64_t total = 0;
  for (const auto& level : metadata.levels) {
    for (const auto& file : level.files) {
      auto place = place_of(file.smallestkey);
      if (!place) continue;
      bytes_from[*std::move(place)] += file.size;
      total += file.size;
    }
  }
  std::vector<std::string> starts;
  uint64_t seen = 0;
  for (const auto& [place, bytes] : bytes_from) {
    const size_t ranges = starts.size() + 1;
    if (seen > 0 && ranges < wanted && seen >= total * ranges / wanted) starts.push_back(place);
    seen += bytes;
  }
  return starts;
}

}  // namespace kvstore::rocks
