#include "cli/reports/json_blocks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "json/plain_json.h"

namespace kvstore::cli {
namespace {

constexpr size_t kMaxLineBytes = size_t{16} << 20;
/// Blocks are large, so that the metrics which their lines name are asked for together.
constexpr size_t kBlockLines = 16'384;
constexpr size_t kBlockBytes = size_t{8} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Reads a line without a tree where that is enough.
absl::StatusOr<FlatValue> Parse(std::string_view text, JsonBlock& block) {
  PlainJson plain(text);
  const FlatValue value = plain.Value(block.json);
  if (plain.IsWhole()) return value;
  auto tree = ParseJson(text);
  if (!tree.ok()) return tree.status();
  return block.json.Add(block.trees.emplace_back(*std::move(tree)));
}

}  // namespace

void JsonBlock::Clear() {
  lines.clear();
  json.Clear();
  blank = 0;
  end = 0;
  is_last = false;
  text.clear();
  trees.clear();
}

JsonBlockReader::JsonBlockReader(int file)
    : file_(file),
      end_(::eventfd(0, EFD_CLOEXEC)),
      reader_(file, kMaxLineBytes, [this] { return Await(); }),
      next_(std::async(std::launch::async, [this] { return Read({}); })) {}

JsonBlockReader::~JsonBlockReader() {
  const uint64_t one = 1;
  // This cannot block: nothing else is written to the eventfd.
  [[maybe_unused]] const auto written = ::write(end_, &one, sizeof(one));
  if (next_.valid()) next_.wait();
  ::close(end_);
}

absl::StatusOr<JsonBlock> JsonBlockReader::Next(JsonBlock used) {
  absl::StatusOr<JsonBlock> block = next_.get();
  if (!block.ok() || block->is_last) return block;
  next_ = std::async(std::launch::async,
                     [this, room = std::move(used)]() mutable { return Read(std::move(room)); });
  return block;
}

absl::Status JsonBlockReader::Await() const {
  std::array<pollfd, 2> files = {{{file_, POLLIN, 0}, {end_, POLLIN, 0}}};
  while (::poll(files.data(), files.size(), -1) < 0 && errno == EINTR) continue;
  if (files[1].revents == 0) return absl::OkStatus();
  return absl::CancelledError("nobody wants the rest of the file");
}

absl::StatusOr<JsonBlock> JsonBlockReader::Read(JsonBlock block) {
  block.Clear();
  if (auto status = ReadLines(block); !status.ok()) return status;
  for (JsonLine& line : block.lines) {
    if (line.json.ok()) line.json = Parse(line.text, block);
  }
  return block;
}

absl::Status JsonBlockReader::ReadLines(JsonBlock& block) {
  std::vector<size_t> ends;  // of the lines, in the block's text
  while (block.lines.size() < kBlockLines && block.text.size() < kBlockBytes) {
    JsonLine line{.offset = reader_.consumed(), .text = {}, .json = FlatValue()};
    const auto result = reader_.Next(line_);
    if (!result.ok()) return result.status();
    if (*result == LineReader::Result::kEnd) {
      block.is_last = true;
      break;
    }
    line.number = ++number_;
    if (number_ == 1 && line_.starts_with(kByteOrderMark)) line_.erase(0, kByteOrderMark.size());
    if (*result == LineReader::Result::kTooLong) {
      line_.clear();
      line.json = absl::InvalidArgumentError(fmt::format("longer than the limit of {} bytes", kMaxLineBytes));
    } else if (line_.find_first_not_of(" \t\r") == std::string::npos) {
      ++block.blank;
      continue;
    }
    block.text.insert(block.text.end(), line_.begin(), line_.end());
    block.lines.push_back(std::move(line));
    ends.push_back(block.text.size());
  }
  block.end = reader_.consumed();
  const std::string_view text(block.text.data(), block.text.size());
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); begin = ends[i++])
    block.lines[i].text = text.substr(begin, ends[i] - begin);
  return absl::OkStatus();
}

}  // namespace kvstore::cli
