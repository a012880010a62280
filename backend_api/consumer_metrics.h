#pragma once

#include <span>
#include <string_view>

#include "backend_api/unit_changes.h"
#include "base/metrics_sink.h"

namespace kvstore {

/// Reports the metrics of a dataset's consumers, in the same form for all backends.
void DescribeConsumers(MetricsSink& sink, std::string_view dataset, std::span<const UnitConsumer> consumers);

}  // namespace kvstore
