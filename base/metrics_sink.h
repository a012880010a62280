#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvstore {

/// Takes figures from a part of the store that describes itself: what /metrics and `kv stat` show. Names and
/// units are Prometheus': "kvstore_mysql_connections", "..._bytes", "..._total" for what only grows.
class MetricsSink {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  virtual ~MetricsSink() = default;
  /// A figure that goes up and down.
  virtual void Gauge(std::string_view name, std::string_view help, const Labels& labels, double value) = 0;
  /// A count since the start.
  virtual void Counter(std::string_view name, std::string_view help, const Labels& labels, double value) = 0;
};

}  // namespace kvstore
