#include "cli/row_source.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/escape.h"
#include "json_api/answers.h"

namespace kvstore::cli {
namespace {

class RowSource : public LineSource {
 public:
  explicit RowSource(std::unique_ptr<RowCursor> cursor) : cursor_(std::move(cursor)) {}

  absl::StatusOr<bool> Next(std::string& line) override {
    const absl::StatusOr<bool> more = cursor_->Next(row_);
    if (!more.ok() || !*more) return more;
    line = ToLine(json_api::ScannedRowToJson(row_));
    if (!row_.continues) ++rows_;
    for (const Item& item : row_.items) cells_ += item.cells.size();
    return true;
  }

  std::vector<std::pair<std::string, uint64_t>> Counts() const override {
    return {{"rows", rows_}, {"cells", cells_}};
  }

 private:
  const std::unique_ptr<RowCursor> cursor_;
  ScannedRow row_;  // its memory is reused
  uint64_t rows_ = 0;
  uint64_t cells_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LineSource>> NewRowSource(KVStore& store, const DatasetSpec& spec) {
  // However many versions are asked for, no more than max_versions are visible.
  auto cursor = store.ScanRows(spec.name, {}, {.versions = std::numeric_limits<uint32_t>::max()});
  if (!cursor.ok()) return cursor.status();
  return std::make_unique<RowSource>(*std::move(cursor));
}

}  // namespace kvstore::cli
