#include "tests/chaos/log.h"

#include <fmt/format.h>

#include <ctime>

namespace kvstore::testing::chaos {

Log::Log(const std::filesystem::path& file) : file_(file) {}

void Log::Say(const std::string& who, const std::string& what) {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begun_;
  const std::time_t clock = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&clock, &utc);
  // The time of day is logged too, since the servers' logs have it.
  const std::string line = fmt::format("{:7.2f} {:02}:{:02}:{:02} {:10} {}", since.count(), utc.tm_hour,
                                       utc.tm_min, utc.tm_sec, who, what);
  const MutexLock lock(mutex_);
  file_ << line << std::endl;
  lines_.push_back(line);
}

void Log::Fail(const std::string& who, const std::string& what) {
  Say(who, "FAILED: " + what);
  const MutexLock lock(mutex_);
  failures_.push_back(who + ": " + what);
}

std::vector<std::string> Log::failures() const {
  const MutexLock lock(mutex_);
  return failures_;
}

std::string Log::text() const {
  const MutexLock lock(mutex_);
  std::string all;
  for (const std::string& line : lines_) all += line + "\n";
  return all;
}

}  // namespace kvstore::testing::chaos
