#pragma once

#include <absl/base/thread_annotations.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"

namespace kvstore::server::resp {

/// The cursors of SCAN, HSCAN and ZSCAN. Clients take a cursor for a number of 64 bits, and a position in a
/// row or among rows does not fit into one: so positions are kept here, by random numbers. Each caller has
/// its own, and loses its oldest when it has too many; a server that is started again knows none. A cursor
/// may be used again, as long as it is known. Thread-safe.
class Cursors {
 public:
  /// How many cursors a caller has at most.
  static constexpr size_t kMostEach = 1'000;

  /// Keeps a position, and returns its cursor, which is never 0.
  ///
  /// what  what the cursor belongs to, such as a command and its key.
  uint64_t Add(std::string_view caller, std::string what, std::string position);
  /// Returns the position of a cursor of this caller for the same thing; nothing if it is not known.
  std::optional<std::string> Find(std::string_view caller, uint64_t cursor, std::string_view what) const;

 private:
  struct Position {
    std::string what;
    std::string position;
  };
  struct OfCaller {
    std::unordered_map<uint64_t, Position> positions;
    std::deque<uint64_t> oldest_first;
  };

  mutable Mutex mutex_;
  // Only grows, by one entry for each caller's name.
  std::map<std::string, OfCaller, std::less<>> callers_ ABSL_GUARDED_BY(mutex_);
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_){std::random_device()()};
};

}  // namespace kvstore::server::resp
