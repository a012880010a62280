#include "base/jitter.h"

#include <algorithm>
#include <cstdint>

#include "base/random_number.h"

namespace kvstore {

using std::chrono::milliseconds;

milliseconds Jittered(milliseconds about) {
  const auto fifth = static_cast<uint64_t>(about.count()) / 5;
  return about - milliseconds(fifth) + milliseconds(RandomNumber() % (2 * fifth + 1));
}

milliseconds FullJitter(milliseconds first, milliseconds most, unsigned failures) {
  constexpr unsigned kMaxDoublings = 20;
  const milliseconds end = std::min(most, first * (1 << std::min(failures - 1, kMaxDoublings)));
  return milliseconds(RandomNumber() % (static_cast<uint64_t>(end.count()) + 1));
}

milliseconds EqualJitter(milliseconds most) {
  const auto half = static_cast<uint64_t>(most.count()) / 2;
  return most - milliseconds(RandomNumber() % (half + 1));
}

}  // namespace kvstore
