#include "cli/reports/json_blocks.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace kvstore::cli {
namespace {

constexpr size_t kMaxLineBytes = size_t{16} << 20;
/// Blocks are large, so that the metrics which their lines name are asked for together.
constexpr size_t kBlockLines = 16'384;
constexpr size_t kBlockBytes = size_t{8} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

JsonBlockReader::JsonBlockReader(int file)
    : reader_(file, kMaxLineBytes, [] {}), next_(std::async(std::launch::async, [this] { return Read(); })) {}

absl::StatusOr<JsonBlock> JsonBlockReader::Next() {
  absl::StatusOr<JsonBlock> block = next_.get();
  if (block.ok() && !block->is_last) next_ = std::async(std::launch::async, [this] { return Read(); });
  return block;
}

absl::StatusOr<JsonBlock> JsonBlockReader::Read() {
  JsonBlock block;
  size_t bytes = 0;
  while (block.lines.size() < kBlockLines && bytes < kBlockBytes) {
    JsonLine line{.offset = reader_.consumed(), .text = {}, .json = Json()};
    const auto result = reader_.Next(line.text);
    if (!result.ok()) return result.status();
    if (*result == LineReader::Result::kEnd) {
      block.is_last = true;
      break;
    }
    line.number = ++number_;
    if (number_ == 1 && line.text.starts_with(kByteOrderMark)) line.text.erase(0, kByteOrderMark.size());
    if (*result == LineReader::Result::kTooLong) {
      line.text.clear();
      line.json = absl::InvalidArgumentError(fmt::format("longer than the limit of {} bytes", kMaxLineBytes));
    } else if (line.text.find_first_not_of(" \t\r") == std::string::npos) {
      ++block.blank;
      continue;
    } else {
      line.json = ParseJson(line.text);
    }
    bytes += line.text.size();
    block.lines.push_back(std::move(line));
  }
  block.end = reader_.consumed();
  return block;
}

}  // namespace kvstore::cli
