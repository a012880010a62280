#include "server/http/line_splitter.h"

namespace kvstore::server {
namespace {

/// When so many bytes of the text are lines that were taken, the others move to its beginning.
constexpr size_t kMovedBytes = size_t{64} << 10;
/// A text that had more capacity gives it back when it is empty.
constexpr size_t kKeptLineBytes = size_t{256} << 10;

bool IsBlank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

void LineSplitter::Append(std::string_view bytes) {
  if (begin_ == text_.size()) {
    text_.clear();
    if (text_.capacity() > kKeptLineBytes) text_.shrink_to_fit();
    begin_ = searched_ = 0;
  } else if (begin_ > kMovedBytes) {
    text_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
  }
  text_ += bytes;
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
    if (IsBlank(line)) continue;
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }
  return std::nullopt;
}

}  // namespace kvstore::server
