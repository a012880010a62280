#include "base/random_number.h"

#include <random>

namespace kvstore {

uint64_t RandomNumber() {
  static thread_local std::mt19937_64 generator = [] {
    // One number of the device has 32 bits: with so few, two processes would often have the same numbers.
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

}  // namespace kvstore
