#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"

namespace kvstore::server {

/// The answers of writes, by their callers and the IDs of their requests, so that an attempt that is repeated
/// because its answer was lost gets it again and writes nothing. Bounded in number, bytes and age: of what is
/// forgotten it keeps how new that was. A caller's answers make place for its own; those of others go only
/// when all together are too many, and then those of who has most. Thread-safe.
class RequestMemory {
 public:
  /// What is kept: of all callers together, and of each.
  struct Bounds {
    size_t answers = 0;
    size_t bytes = 0;
    size_t answers_each = 0;
    size_t bytes_each = 0;
    std::chrono::milliseconds age{0};
  };
  explicit RequestMemory(const Bounds& bounds) : bounds_(bounds) {}

  struct Answer {
    absl::Status status;
    std::string response;  ///< The message, serialized.
    bool partial = false;  ///< The message has not all that the answer had; for who asks to make whole.
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
  State Begin(std::string_view caller, const std::string& id, Answer& answer,
              std::optional<Repeated> repeated = std::nullopt);
  /// Ends what Begin called new. With an answer that is to be given again, or none if nothing was done.
  void End(std::string_view caller, const std::string& id, std::optional<Answer> answer);

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
  /// What is kept for one caller.
  struct Part {
    std::unordered_map<std::string, Entry> entries;
    std::deque<Age> answered;  // the oldest first
    size_t bytes = 0;
    /// When the newest of those that were forgotten was answered: what was sent later, was not.
    Clock::time_point forgotten = Clock::time_point::min();
  };

  // Under mutex_:
  Part& PartOf(std::string_view caller);
  /// Forgets the oldest answers of a caller, as far as its bounds ask for.
  void Trim(Part& part, Clock::time_point now);
  /// Forgets the oldest answers of those who have most, as far as the bounds of all ask for.
  void TrimAll();
  void ForgetOldest(Part& part);
  static size_t SizeOf(const std::string& id, const Answer& answer);

  const Bounds bounds_;
  mutable std::mutex mutex_;                          // guards what follows
  std::map<std::string, Part, std::less<>> callers_;  // only grows: as many as there are names
  size_t answers_ = 0;
  size_t bytes_ = 0;
};

}  // namespace kvstore::server
