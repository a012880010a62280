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
///   end.SetWaitingFor([&] { return "calls: " + ...; });
///   ...                  // a signal comes
///   end.Begin(10s, [](const std::string& left) { log(left); });
///   Drain();             // may hang
///   end.SetWaitingFor([] { return std::string("the store, which is being closed"); });
///   end.Extend(3s);
///   ...                  // may hang, too
///   end.Done();
class EndInTime {
 public:
  using Clock = std::chrono::steady_clock;
  /// Describes what the shutdown waits for, for people. Called by another thread when the time is over.
  using What = std::function<std::string()>;
  /// Is told what the shutdown waited for when the time was over. Called by another thread; may hang, but not
  /// throw.
  using Report = std::function<void(const std::string&)>;

  EndInTime() = default;
  ~EndInTime() { Done(); }
  EndInTime(const EndInTime&) = delete;
  EndInTime& operator=(const EndInTime&) = delete;

  /// Starts the time; must be called once at most, and not beside Done. Unless Done is called before `time`
  /// has passed, `report` gets what is waited for by then, and the process exits with code 1, as if it had
  /// been killed: no destructors run, and nothing is flushed. It exits a second later even if the description
  /// or `report` hang.
  void Begin(std::chrono::milliseconds time, Report report);
  /// Replaces the description of what is waited for. The one before is not called any more when this returns.
  void SetWaitingFor(What what);
  /// Gives what is left of the shutdown so much more time, or less. Does nothing before Begin.
  void Extend(std::chrono::milliseconds time);
  /// Stops the time: what is left of the shutdown cannot hang. Does nothing before Begin.
  void Done();

 private:
  /// Waits until the time is over or Done is called. Returns whether the time is over.
  bool IsLate();
  std::string Describe();

  Mutex mutex_;
  std::condition_variable over_;  // notified when done_ is set, or deadline_ changes
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point deadline_ ABSL_GUARDED_BY(mutex_);  // set by Begin
  What what_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // set by Begin, joined by Done
};

}  // namespace kvstore
