#pragma once

#include <cstdlib>

namespace kvstore::testing {

/// Programs that are started while this lives have a disk on which each flush takes 5 ms, for as long as they
/// run.
class SlowDisk {
 public:
  SlowDisk() { ::setenv("LD_PRELOAD", KV_SLOW_DISK, 1); }
  ~SlowDisk() { ::unsetenv("LD_PRELOAD"); }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;
};

}  // namespace kvstore::testing
