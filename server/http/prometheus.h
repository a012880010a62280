#pragma once

#include <string_view>

#include "server/http/json_operations.h"

namespace kvstore::server {

/// Prometheus' HTTP API over reports, as much of it as Grafana asks for: by the rest of the path after
/// /api/v1/. docs/grafana.md says what is answered. A value that lives as long as the process.
///
/// https://prometheus.io/docs/prometheus/latest/querying/api/
const JsonOperations& PrometheusOperations();

/// The name there of /api/v1/label/NAME/values, whose NAME is the parameter "label".
inline constexpr std::string_view kLabelValues = "label/values";

}  // namespace kvstore::server
