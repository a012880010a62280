#include "server/http/line_splitter.h"

namespace kvstore::server {
namespace {

/// So many bytes of lines that were taken may stay in the text before the others.
constexpr size_t kTakenBytes = size_t{64} << 10;

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

void LineSplitter::Append(std::string_view bytes) {
  if (begin_ == text_.size()) {
    text_.clear();
    begin_ = searched_ = 0;
  }
  text_ += bytes;
}

void LineSplitter::Shrink() {
  // At least as much is taken as is moved, so that many short lines are not moved many times.
  if (begin_ <= kTakenBytes || begin_ < text_.size() - begin_) return;
  // Assigned to it, a short text would leave it its memory.
  text_.substr(begin_).swap(text_);
  searched_ -= begin_;
  begin_ = 0;
}

std::optional<std::string> LineSplitter::Next() {
  while (!too_long_) {
    size_t end = text_.find('\n', searched_);
    const bool whole = end != std::string::npos;
    if (!whole) end = text_.size();
    if (end - begin_ > max_bytes_) {
      too_long_ = true;
      return std::nullopt;
    }
    searched_ = end;
    if (!whole && (!ended_ || begin_ == end)) return std::nullopt;
    std::string line = text_.substr(begin_, end - begin_);
    begin_ = searched_ = whole ? end + 1 : end;
    Shrink();
    if (IsBlank(line)) continue;
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  return std::nullopt;
}

}  // namespace kvstore::server
