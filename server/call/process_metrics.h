#pragma once

#include "base/metrics_sink.h"

namespace kvstore::server {

/// Tells how much of the machine this process takes, under the names that Prometheus' client libraries have
/// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics); prometheus-cpp has none of
/// them. A figure that cannot be read from /proc is left out.
void DescribeProcess(MetricsSink& sink);

}  // namespace kvstore::server
