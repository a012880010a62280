#include "cli/line_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kvstore::cli {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

}  // namespace

absl::StatusOr<bool> LineReader::Fill() {
  if (end_) return false;
  pollfd ready{.fd = file_, .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, 0) != 1) {
    if (auto status = before_wait_(); !status.ok()) return status;
  }
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + kReadBytes);
  ssize_t got = 0;
  do {
    got = ::read(file_, buffer_.data() + old, kReadBytes);
  } while (got < 0 && errno == EINTR);
  buffer_.resize(old + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return absl::UnavailableError(fmt::format("cannot read the input: {}", std::strerror(errno)));
  end_ = got == 0;
  return got > 0;
}

absl::StatusOr<LineReader::Result> LineReader::Next(std::string& line) {
  bool too_long = false;
  while (true) {
    const size_t newline = buffer_.find('\n', scanned_);
    if (newline != std::string::npos) {
      const size_t size = newline - begin_;
      too_long = too_long || size > max_line_bytes_;
      if (!too_long) line.assign(buffer_, begin_, size);
      begin_ = scanned_ = newline + 1;
      consumed_ += size + 1;
      return too_long ? Result::kTooLong : Result::kLine;
    }
    scanned_ = buffer_.size();
    if (scanned_ - begin_ > max_line_bytes_) {
      too_long = true;
      consumed_ += scanned_ - begin_;
      begin_ = scanned_;
    }
    const auto more = Fill();
    if (!more.ok()) return more.status();
    if (*more) continue;
    const size_t size = buffer_.size() - begin_;
    if (size == 0 && !too_long) return Result::kEnd;
    line.assign(buffer_, begin_, size);
    begin_ = scanned_ = buffer_.size();
    consumed_ += size;
    return too_long ? Result::kTooLong : Result::kLine;
  }
}

}  // namespace kvstore::cli
