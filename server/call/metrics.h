#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/metrics_sink.h"
#include "server/call/call_info.h"
#include "server/call/operation.h"

namespace kvstore::server {

/// Counts the server's calls, and writes the text of /metrics. Thread-safe.
class Metrics {
 public:
  /// backends  The names of all backends.
  /// describe  Adds the figures of other parts of the program; called by Text.
  Metrics(const std::vector<std::string>& backends, std::function<void(MetricsSink&)> describe);

  /// Counts a call that has ended.
  ///
  /// backend  The backend that has its dataset; empty: the call was about none.
  void Count(Operation operation, std::string_view backend, Door door, double seconds,
             const absl::Status& status, size_t request_bytes, size_t response_bytes);

  /// Returns all figures in Prometheus' text format.
  std::string Text() const;

 private:
  /// The metrics of one operation on one backend by one door. They are kept, because a family's look-up is
  /// slow, and made for the first call: of all that there could be, few are used, and Text looks at each.
  struct OperationMetrics {
    std::once_flag made;
    prometheus::Histogram* seconds = nullptr;
    prometheus::Counter* request_bytes = nullptr;
    prometheus::Counter* response_bytes = nullptr;
  };
  using DoorMetrics = std::array<OperationMetrics, kOperations.size()>;
  using BackendMetrics = std::array<DoorMetrics, kDoorCount>;

  OperationMetrics& Find(BackendMetrics& all, const std::string& backend, Door door, Operation operation);

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& errors_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& request_bytes_;
  prometheus::Family<prometheus::Counter>& response_bytes_;
  std::map<std::string, BackendMetrics, std::less<>> backends_;
  const std::function<void(MetricsSink&)> describe_;
};

}  // namespace kvstore::server
