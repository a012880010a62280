#pragma once

#include <cstdlib>

namespace kvstore::testing {

/// While it lives, programs that are started have a disk that takes 5 ms to make anything durable, as long as
/// they run.
class SlowDisk {
 public:
  SlowDisk() { ::setenv("LD_PRELOAD", KV_SLOW_DISK, 1); }
  ~SlowDisk() { ::unsetenv("LD_PRELOAD"); }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;
};

}  // namespace kvstore::testing
