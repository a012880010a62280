#pragma once

#include <atomic>
#include <cstddef>

namespace kvstore {

/// A small number of the calling thread: 0 for the first that asks, then 1, and so on. For data that is kept
/// apart by thread so that threads do not meet in it.
inline size_t ThreadNumber() {
  static std::atomic<size_t> threads{0};
  static thread_local const size_t number = threads++;
  return number;
}

}  // namespace kvstore
