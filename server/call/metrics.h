#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <functional>
#include <map>
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
  /// protocol  The door by which it came.
  /// backend   The backend that has its dataset; empty: the call was about none.
  void Count(Operation operation, Protocol protocol, std::string_view backend, double seconds,
             const absl::Status& status, size_t request_bytes, size_t response_bytes);

  /// Returns all figures in Prometheus' text format.
  std::string Text() const;

 private:
  /// The metrics of one operation by one door on one backend. They are kept, because a family's look-up is
  /// slow.
  struct OperationMetrics {
    prometheus::Histogram* seconds = nullptr;
    prometheus::Counter* request_bytes = nullptr;
    prometheus::Counter* response_bytes = nullptr;
  };
  using DoorMetrics = std::array<OperationMetrics, kOperations.size()>;
  using BackendMetrics = std::array<DoorMetrics, kProtocolCount>;

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& errors_;
  std::map<std::string, BackendMetrics, std::less<>> backends_;
  const std::function<void(MetricsSink&)> describe_;
};

}  // namespace kvstore::server
