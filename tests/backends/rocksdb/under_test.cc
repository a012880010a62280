#include "tests/backends/rocksdb/under_test.h"

#include <rocksdb/db.h>

#include <string>
#include <vector>

namespace kvstore::testing {

absl::StatusOr<std::unique_ptr<RocksDbBackend>> OpenRocksDb(const std::filesystem::path& dir,
                                                            std::span<const DatasetSpec> known,
                                                            bool cache_answers) {
  auto held = rocks::DataDir::Open(dir, /*create=*/true);
  if (!held.ok()) return held.status();
  return RocksDbBackend::Open(
      *std::move(held), known, {},
      {.cache_bytes = 8 << 20, .cache_answers = cache_answers, .write_buffer_bytes = 8 << 20});
}

void Rearrange(RocksDbBackend& backend, const DatasetSpec& spec, Random& random) {
  const auto family = backend.engine().FindFamily(spec.name);
  rocksdb::DB& db = backend.engine().db();
  if (random.OneIn(2)) {
    db.Flush({}, family->handle).PermitUncheckedError();
    return;
  }
  rocksdb::ColumnFamilyMetaData files;
  db.GetColumnFamilyMetaData(family->handle, &files);
  // Choose one file, or a few of a level, in any order: RocksDB adds the files that overlap with them.
  std::vector<std::string> chosen;
  const auto& level = files.levels[random.Below(files.levels.size())];
  for (const auto& file : level.files) {
    if (random.OneIn(2)) chosen.push_back(file.name);
  }
  if (chosen.empty()) return;
  const int target = level.level == 0 ? 1 + static_cast<int>(random.Below(6))
                                      : std::min(6, level.level + static_cast<int>(random.Below(2)));
  // Small files make a compaction of one leave out others with the same column.
  rocksdb::CompactionOptions options;
  options.output_file_size_limit = random.OneIn(4) ? UINT64_MAX : 1;
  // RocksDB refuses some choices, which would leave newer data below older. Nothing happens then.
  db.CompactFiles(options, family->handle, chosen, target).PermitUncheckedError();
}

UnderTest RocksDb() {
  return {
      .name = "RocksDb",
      .open = [](const std::filesystem::path& dir, std::span<const DatasetSpec> known)
          -> absl::StatusOr<std::unique_ptr<Backend>> { return OpenRocksDb(dir, known); },
      .disturb = [](Backend& backend, const DatasetSpec& spec,
                    Random& random) { Rearrange(dynamic_cast<RocksDbBackend&>(backend), spec, random); },
  };
}

}  // namespace kvstore::testing
