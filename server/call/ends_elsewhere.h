#pragma once

namespace kvstore::server {

/// While one lives, calls that its thread brings to their end are ended by other threads. Code that cancels
/// calls under a lock needs one if the end of a call takes that lock, too. A protocol that can end a call on
/// the thread that cancels it asks Wanted. gRPC may do that; 1.51, which has threads of its own for
/// callbacks, was not seen to.
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
