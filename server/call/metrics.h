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
#include "kvstore_api/metrics_sink.h"
#include "server/operation.h"

namespace kvstore::server {

/// What the server counts of its calls, and the text of /metrics. Thread-safe.
class Metrics {
 public:
  /// backends  the names of all that there are.
  /// describe  adds the figures of the parts beneath, when the text is made.
  Metrics(const std::vector<std::string>& backends, std::function<void(MetricsSink&)> describe);

  /// Counts a call that has ended.
  ///
  /// backend  where its dataset is; empty: there was none.
  void Count(Operation operation, std::string_view backend, double seconds, const absl::Status& status,
             size_t request_bytes, size_t response_bytes);

  /// In Prometheus' text format.
  std::string Text() const;

 private:
  /// Of one operation on one backend; held, because finding them costs.
  struct Held {
    prometheus::Histogram* seconds = nullptr;
    prometheus::Counter* request_bytes = nullptr;
    prometheus::Counter* response_bytes = nullptr;
  };
  using OfBackend = std::array<Held, kOperations.size()>;

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& errors_;
  std::map<std::string, OfBackend, std::less<>> held_;
  const std::function<void(MetricsSink&)> describe_;
};

}  // namespace kvstore::server
