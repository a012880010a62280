#pragma once

#include <atomic>
#include <cstddef>

namespace kvstore {

/// A small number of the calling thread: 0 for the first thread that calls this, then 1, and so on. It
/// spreads threads over slots of shared data, so that they do not contend.
inline size_t ThreadNumber() {
  static std::atomic<size_t> threads{0};
  static thread_local const size_t number = threads++;
  return number;
}

}  // namespace kvstore
