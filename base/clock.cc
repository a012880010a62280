#include "base/clock.h"

#include <chrono>

namespace kvstore {

uint64_t WallClockMs() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

}  // namespace kvstore
