#pragma once

namespace kvstore::server {

/// While one lives, calls that its thread brings to their end are ended by other threads: for who cancels
/// calls under a lock that the end of a call takes, too. A protocol that can end calls on any thread asks
/// Wanted.
class EndsElsewhere {
 public:
  EndsElsewhere() { ++depth_; }
  ~EndsElsewhere() { --depth_; }
  EndsElsewhere(const EndsElsewhere&) = delete;
  EndsElsewhere& operator=(const EndsElsewhere&) = delete;

  /// Returns whether there is one on this thread.
  static bool Wanted() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace kvstore::server
