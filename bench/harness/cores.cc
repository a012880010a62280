#include "bench/harness/cores.h"

#include <sched.h>

namespace kvstore::bench {

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

absl::Status RunOn(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  if (::sched_setaffinity(0, sizeof(set), &set) == 0) return absl::OkStatus();
  return absl::UnavailableError("cannot choose the cores of a process");
}

}  // namespace kvstore::bench
