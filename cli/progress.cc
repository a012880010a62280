#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/escape.h"

namespace kvstore::cli {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr uint64_t kWidth = 30;

}  // namespace

ProgressBar::ProgressBar(std::string title, std::string unit)
    : title_(std::move(title)), unit_(std::move(unit)), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (shown_) WriteErr("\n");
}

void ProgressBar::Show(uint64_t done, uint64_t total, const std::string& note) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (shown_ && now - last_ < kInterval && done < total) return;
  last_ = now;
  shown_ = true;
  if (total == 0) {
    WriteErr(fmt::format("\r{} {} {} {}\x1b[K", title_, done, unit_, Printable(note, Lines::kOne)));
  } else {
    const uint64_t filled = std::min(kWidth, kWidth * done / total);
    WriteErr(fmt::format("\r{} [{:#<{}}{:.<{}}] {:3}% {}\x1b[K", title_, "", filled, "", kWidth - filled,
                         std::min<uint64_t>(100, 100 * done / total), Printable(note, Lines::kOne)));
  }
}

}  // namespace kvstore::cli
