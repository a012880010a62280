#include "server/call/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace kvstore::server {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void DescribeProcess(MetricsSink& sink) {
  std::ifstream statm("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  if (statm >> all >> resident) {
    sink.Gauge("process_resident_memory_bytes", "Resident memory", {},
               static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    sink.Counter("process_cpu_seconds_total", "Processor time, of the program and of the system for it", {},
                 Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  std::error_code error;
  std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  if (!error) {
    // The iterator has one itself.
    sink.Gauge("process_open_fds", "File descriptors that are open", {},
               static_cast<double>(std::distance(begin(descriptors), end(descriptors)) - 1));
  }
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) == 0) {
    sink.Gauge("process_max_fds", "The most that may be open", {}, static_cast<double>(most.rlim_cur));
  }
}

}  // namespace kvstore::server
