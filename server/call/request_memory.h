#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "base/mutex.h"

namespace kvstore::server {

/// Makes writes idempotent: keeps their answers by caller and request ID, so that a retry whose first attempt
/// was carried out gets the same answer and writes nothing. The memory is bounded in number, bytes and age.
///
/// When a caller exceeds its bounds its own oldest answers are forgotten. Other callers lose answers only
/// when all callers together exceed the bounds, and then the caller with most answers, or most bytes, does.
/// The time of each caller's newest forgotten answer is kept, so that a retry whose first attempt may be
/// among the forgotten ones is told so. Thread-safe.
class RequestMemory {
 public:
  /// The bounds for all callers together, and for each one.
  struct Bounds {
    size_t answers = 0;                ///< The answers of all callers together.
    size_t bytes = 0;                  ///< The bytes of these, including the memory of their entries.
    size_t answers_each = 0;           ///< The answers of one caller.
    size_t bytes_each = 0;             ///< The bytes of these.
    std::chrono::milliseconds age{0};  ///< Older answers are forgotten (limits.remember_ms).
  };
  explicit RequestMemory(const Bounds& bounds) : bounds_(bounds) {}

  struct Answer {
    absl::Status status;
    std::string response;  ///< The response message, serialized.
    bool partial = false;  ///< Something was left out of the message; whoever gets it must fill that in.
  };
  using Clock = std::chrono::steady_clock;
  enum class State { kNew, kRunning, kAnswered, kForgotten };
  /// Says that a request is a retry.
  struct Repeated {
    /// The first attempt was not sent before this time. Without a value, Bounds::age ago is assumed, so a
    /// retry that comes later than that may be carried out a second time. Attempts over HTTP never have one.
    std::optional<Clock::time_point> sent;
  };
  /// Looks a request up, and notes it as running if it is new.
  ///
  /// kNew        The request must be carried out now, and End called.
  /// kRunning    An earlier attempt has not ended yet.
  /// kAnswered   `answer` is set to the answer of an earlier attempt.
  /// kForgotten  An earlier attempt may have been carried out, and its answer forgotten.
  State Begin(std::string_view caller, const std::string& id, Answer& answer,
              std::optional<Repeated> repeated = std::nullopt);
  /// Ends a request that was kNew.
  ///
  /// answer  The answer that retries will get; nullopt: nothing was done, so a retry is carried out as new.
  void End(std::string_view caller, const std::string& id, std::optional<Answer> answer);

  /// Returns how many requests it knows, running ones included.
  size_t size() const;

 private:
  struct Entry {
    bool answered = false;
    Answer answer;
  };
  struct Age {
    Clock::time_point at;
    std::string id;
  };
  /// The requests of one caller.
  struct CallerMemory {
    std::unordered_map<std::string, Entry> entries;
    std::deque<Age> answered;  // the oldest first
    size_t bytes = 0;
    /// When the newest of the forgotten answers was given: no request that was sent later was forgotten.
    Clock::time_point forgotten = Clock::time_point::min();
  };

  CallerMemory& MemoryOf(std::string_view caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Forgets the caller's oldest answers until it is within its bounds.
  void Trim(CallerMemory& memory, Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Forgets the oldest answers of the callers with most of them until all are within the bounds for all.
  void TrimAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOldest(CallerMemory& memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static size_t SizeOf(const std::string& id, const Answer& answer);

  const Bounds bounds_;
  mutable Mutex mutex_;
  // Only grows, by one entry for each caller's name.
  std::map<std::string, CallerMemory, std::less<>> callers_ ABSL_GUARDED_BY(mutex_);
  size_t answers_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kvstore::server
