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
/// answer was lost gets it again and writes nothing. Bounded in number, bytes and age: of what is forgotten
/// it keeps how new that was. Thread-safe.
class RequestMemory {
 public:
  RequestMemory(size_t max_answers, size_t max_bytes, std::chrono::milliseconds max_age)
      : max_answers_(max_answers), max_bytes_(max_bytes), max_age_(max_age) {}

  struct Answer {
    absl::Status status;
    std::string response;  ///< The message, serialized.
  };
  using Clock = std::chrono::steady_clock;
  enum class State { kNew, kRunning, kAnswered, kForgotten };
  /// That a request was sent before.
  struct Repeated {
    std::optional<Clock::time_point>
        sent;  ///< At first, or earlier; nothing: as long ago as answers are kept.
  };
  /// kNew: the caller is to carry it out, and to call End. kRunning: an earlier attempt has not ended yet.
  /// kAnswered: `answer` is set. kForgotten: an earlier attempt may have been carried out, and forgotten.
  State Begin(const std::string& id, Answer& answer, std::optional<Repeated> repeated = std::nullopt);
  /// Ends what Begin called new. With an answer that is to be given again, or none if nothing was done.
  void End(const std::string& id, std::optional<Answer> answer);

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

  /// Forgets the oldest answers, as far as the bounds ask for. Under mutex_.
  void Trim(Clock::time_point now);
  static size_t SizeOf(const std::string& id, const Answer& answer);

  const size_t max_answers_;
  const size_t max_bytes_;
  const std::chrono::milliseconds max_age_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Entry> entries_;
  std::deque<Age> answered_;  // the oldest first
  /// When the newest of those that were forgotten was answered: what was sent later, was not.
  Clock::time_point forgotten_ = Clock::time_point::min();
  size_t bytes_ = 0;
};

}  // namespace kvstore::server
