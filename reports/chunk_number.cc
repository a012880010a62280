#include "reports/chunk_number.h"

#include <algorithm>
#include <atomic>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/random_number.h"

namespace kvstore::reports {

namespace {

/// The last time that a number has room for.
constexpr uint64_t kMaxMs = (uint64_t{1} << 48) - 1;
/// A clock that is set back by less stands still for the numbers; one that was far ahead is followed, so that
/// it does not lead all later numbers there.
constexpr uint64_t kMaxSetBackMs = 3'600'000;

}  // namespace

std::string NewChunkNumber(uint64_t least_ms) {
  static std::atomic<uint64_t> last{0};
  const uint64_t now = WallClockMs() << 16;
  uint64_t before = last.load();
  uint64_t next = 0;
  do {
    const bool set_back = before > now && (before - now) >> 16 > kMaxSetBackMs;
    next = set_back ? now : std::max(now, before + 1);
  } while (!last.compare_exchange_weak(before, next));
  // `least_ms` comes from stored names: one from a clock that is far ahead must not lead all later numbers
  // there.
  std::string number;
  AppendBigEndian(number, std::max(next, std::min(least_ms, kMaxMs) << 16 | (next & 0xFFFF)));
  AppendBigEndian(number, RandomNumber());
  return number;
}

std::string LeastChunkNumber(uint64_t ms) {
  std::string number;
  AppendBigEndian(number, std::min(ms, kMaxMs) << 16);
  AppendBigEndian(number, uint64_t{0});
  return number;
}

ChunkName NameOfPart(std::string_view number, uint16_t part) {
  ChunkName name(number);
  AppendBigEndian(name, part);
  return name;
}

uint64_t TimeOfName(const ChunkName& name) { return ReadBigEndian<uint64_t>(name) >> 16; }

}  // namespace kvstore::reports
