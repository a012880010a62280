#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace kvstore::testing {

/// Waits until `holds` returns true; returns false if it does not within half a minute.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace kvstore::testing
