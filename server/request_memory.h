#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"

namespace kvstore::server {

/// The answers of writes, by the IDs of their requests, so that an attempt that is repeated because its
/// answer was lost gets it again and writes nothing. Bounded in number, bytes and age. Thread-safe.
class RequestMemory {
 public:
  RequestMemory(size_t max_answers, size_t max_bytes, std::chrono::milliseconds max_age)
      : max_answers_(max_answers), max_bytes_(max_bytes), max_age_(max_age) {}

  struct Answer {
    absl::Status status;
    std::string response;  ///< The message, serialized.
  };
  enum class State { kNew, kRunning, kAnswered };
  /// kNew: the caller is to carry it out, and to call End. kRunning: an earlier attempt has not ended yet.
  /// kAnswered: `answer` is set.
  State Begin(const std::string& id, Answer& answer);
  /// Ends what Begin called new. With an answer that is to be given again, or none if nothing was done.
  void End(const std::string& id, std::optional<Answer> answer);

  size_t size() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    bool answered = false;
    Answer answer;
  };
  struct Age {
    Clock::time_point at;
    std::string id;
  };

  /// Forgets the oldest answers, as far as the bounds ask for. Under mutex_.
  void Trim();
  static size_t SizeOf(const std::string& id, const Answer& answer);

  const size_t max_answers_;
  const size_t max_bytes_;
  const std::chrono::milliseconds max_age_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Entry> entries_;
  std::deque<Age> answered_;  // the oldest first
  size_t bytes_ = 0;
};

}  // namespace kvstore::server
