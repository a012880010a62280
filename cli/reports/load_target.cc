#include "cli/reports/load_target.h"

#include <fmt/format.h>

#include <utility>

#include "cli/command.h"
#include "reports/crc32c.h"

namespace kvstore::cli {
namespace {

/// A batch also ends with so many bytes of text, so that sets and distributions, of which one point may have
/// thousands of values, do not take all memory. Never to be changed: a load with --add that another version
/// has begun would be cut into other batches.
constexpr uint64_t kMaxBatchBytes = uint64_t{16} << 20;

}  // namespace

void LoadTarget::Use(const reports::ReportInfo& info, std::string_view layout) {
  Send();
  layout_ = reports::Crc32c(layout);
  checksum_ = layout_;
  batch_.emplace(info);
}

reports::Batch& LoadTarget::BatchFor(size_t points) {
  if (batch_->size() + points > options_.batch_points || bytes_ >= kMaxBatchBytes) Send();
  return *batch_;
}

void LoadTarget::Done(uint64_t line, uint64_t offset, std::string_view text) {
  ++counts_.lines;
  if (!begun_) {
    begun_ = true;
    first_line_ = line;
    first_offset_ = offset;
  }
  bytes_ += text.size();
  // The checksum is a part of the batch's ID, and of nothing else.
  if (!prefix_.empty()) checksum_ = reports::Crc32c("\n", reports::Crc32c(text, checksum_));
}

void LoadTarget::Reject(uint64_t line, uint64_t offset, std::string_view text, const std::string& why) {
  Done(line, offset, text);
  ++counts_.rejected;
  rejected_lines_.Add(line, text, why);
}

void LoadTarget::Send() {
  if (!batch_ || batch_->size() == 0) return;
  reports::Batch next(batch_->info());
  counts_.points += batch_->size();
  std::string id = prefix_.empty() ? "" : fmt::format("{}/{}/{:08x}", prefix_, first_offset_, checksum_);
  OrFail(writer_.Write({std::move(*batch_), std::move(id), fmt::format("{} line {}", file_, first_line_)}));
  batch_.emplace(std::move(next));
  checksum_ = layout_;
  begun_ = false;
  bytes_ = 0;
}

}  // namespace kvstore::cli
