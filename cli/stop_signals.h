#pragma once

#include <condition_variable>
#include <functional>
#include <thread>

#include "base/mutex.h"

namespace kvstore::cli {

/// Receives SIGTERM and SIGINT by a thread of its own, instead of letting them end the process. To be made
/// before the process has other threads, because threads inherit that the signals are blocked. They stay
/// blocked when this is destroyed. Thread-safe.
class StopSignals {
 public:
  /// on_first  Called once, with the number of the first signal, by that thread, while the main thread may be
  ///           at anything. Must not block.
  explicit StopSignals(std::function<void(int)> on_first);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Waits for the first signal, unless it has come, and returns its number.
  int Wait();

 private:
  void Receive(const std::function<void(int)>& on_first);

  Mutex mutex_;
  std::condition_variable received_;
  int signal_ ABSL_GUARDED_BY(mutex_) = 0;  // the first one; 0: none has come
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kvstore::cli
