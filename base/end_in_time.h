#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"

namespace kvstore {

/// Bounds the time that a process takes to shut down: if a thread hangs, the process is ended all the same
/// when the time is over. Thread-safe.
///
///   EndInTime end;
///   ...
///   end.Begin(10s, [&] { return "calls: " + ...; }, [](const std::string& left) { log(left); });
///   Drain();             // may hang
///   end.SetWaitingFor([] { return std::string("migrations"); });
///   ...                  // may hang, too
///   end.Done();
class EndInTime {
 public:
  /// Describes what the shutdown waits for, for people. Called by another thread when the time is over.
  using What = std::function<std::string()>;

  EndInTime() = default;
  ~EndInTime() { Done(); }
  EndInTime(const EndInTime&) = delete;
  EndInTime& operator=(const EndInTime&) = delete;

  /// Starts the time; must be called once at most. Unless Done is called before `time` has passed, `report`
  /// gets what is waited for by then, and the process exits with code 1, as if it had been killed: no
  /// destructors run, and nothing is flushed.
  void Begin(std::chrono::milliseconds time, What what, std::function<void(const std::string&)> report);
  /// Replaces the description of what is waited for. The one before is not called any more when this returns.
  void SetWaitingFor(What what);
  /// Stops the time: what is left of the shutdown cannot hang. Does nothing before Begin.
  void Done();

 private:
  Mutex mutex_;
  std::condition_variable over_;  // notified when done_ is set
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  What what_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // set by Begin, joined by Done
};

}  // namespace kvstore
