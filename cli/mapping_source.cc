#include "cli/mapping_source.h"

#include <fmt/format.h>

namespace kvstore::cli {
namespace {

class MappingSource : public LineSource {
 public:
  MappingSource(KVStore& store, std::string dataset) : store_(store), dataset_(std::move(dataset)) {}

  absl::StatusOr<bool> Next(std::string& line) override {
    while (at_ == page_.entries.size()) {
      if (begun_ && page_.marker.empty()) return false;
      auto page = store_.ScanMappings(dataset_, {}, {.limit = kMaxListEntries, .marker = page_.marker});
      if (!page.ok()) return page.status();
      page_ = *std::move(page);
      begun_ = true;
      at_ = 0;
    }
    const ScannedMapping& entry = page_.entries[at_++];
    line = fmt::format(R"({{"from":"{}","to":"{}","sequence":{}}})", entry.from, entry.to, entry.sequence);
    ++entries_;
    return true;
  }

  std::vector<std::pair<std::string, uint64_t>> Counts() const override { return {{"entries", entries_}}; }

 private:
  KVStore& store_;
  const std::string dataset_;
  ScannedMappingPage page_;
  size_t at_ = 0;  // the first entry of the page that was not given
  bool begun_ = false;
  uint64_t entries_ = 0;
};

}  // namespace

std::unique_ptr<LineSource> NewMappingSource(KVStore& store, const DatasetSpec& spec) {
  return std::make_unique<MappingSource>(store, spec.name);
}

}  // namespace kvstore::cli
