#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"

namespace kvstore::operate {

/// Sends texts to an address, in order, by a thread of its own: each is the body of a POST of JSON. A text
/// that is not taken (status 2xx) is sent again for some minutes, and then given up. Thread-safe.
class Webhook {
 public:
  /// url  http or https.
  /// log  Is told, by that thread, what could not be sent, and why.
  Webhook(std::string url, std::function<void(const std::string&)> log);
  /// Sends what is left, as long as it is taken.
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  /// Returns at once. If kMostWaiting texts wait already, the oldest is given up.
  void Send(std::string text);
  /// How many texts were given up.
  uint64_t given_up() const;

  static constexpr size_t kMostWaiting = 1'000;

 private:
  void Run();
  /// Sends one text. Returns what went wrong; empty: it was taken.
  std::string Post(const std::string& text) const;
  /// Sends one text until it is taken or given up.
  void Deliver(const std::string& text);
  /// Waits; returns false at once when this is being destroyed.
  bool SleepUnlessStopping(std::chrono::milliseconds wait);

  const std::string url_;
  const std::function<void(const std::string&)> log_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t given_up_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace kvstore::operate
