#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvstore {

/// Receives metrics from a part of the store that describes itself; /metrics and `kv stat` show them. Names
/// and units are those of Prometheus: "kvstore_mysql_connections", "..._bytes", "..._total" for what only
/// grows.
class MetricsSink {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  virtual ~MetricsSink() = default;
  /// A value that goes up and down.
  virtual void Gauge(std::string_view name, std::string_view help, const Labels& labels, double value) = 0;
  /// A count since the process started.
  virtual void Counter(std::string_view name, std::string_view help, const Labels& labels, double value) = 0;
};

}  // namespace kvstore
