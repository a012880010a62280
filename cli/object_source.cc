#include "cli/object_source.h"

#include <fmt/format.h>

#include "cli/object_text.h"

namespace kvstore::cli {
namespace {

class ObjectSource : public LineSource {
 public:
  ObjectSource(KVStore& store, std::string dataset) : store_(store), dataset_(std::move(dataset)) {}

  absl::StatusOr<bool> Next(std::string& line) override {
    while (at_ == page_.objects.size()) {
      if (begun_ && page_.marker.empty()) return false;
      auto page = store_.ScanObjects(
          dataset_, {}, {.include_inactive = true, .limit = kMaxListEntries, .marker = page_.marker});
      if (!page.ok()) return page.status();
      page_ = *std::move(page);
      begun_ = true;
      at_ = 0;
    }
    Object& object = page_.objects[at_++];
    PutOnOneLine(object.data);
    line = fmt::format(R"({{"id":"{}","data":{}}})", object.id, object.data);
    ++objects_;
    return true;
  }

  std::vector<std::pair<std::string, uint64_t>> Counts() const override { return {{"objects", objects_}}; }

 private:
  KVStore& store_;
  const std::string dataset_;
  ObjectPage page_;
  size_t at_ = 0;  // the first object of the page that was not given
  bool begun_ = false;
  uint64_t objects_ = 0;
};

}  // namespace

std::unique_ptr<LineSource> NewObjectSource(KVStore& store, const DatasetSpec& spec) {
  return std::make_unique<ObjectSource>(store, spec.name);
}

}  // namespace kvstore::cli
