#include "backend_api/consumer_metrics.h"

#include <string>

namespace kvstore {

void DescribeConsumers(MetricsSink& sink, std::string_view dataset, std::span<const UnitConsumer> consumers) {
  for (const UnitConsumer& consumer : consumers) {
    const MetricsSink::Labels labels = {{"dataset", std::string(dataset)}, {"consumer", consumer.name}};
    sink.Gauge("kvstore_consumer_lag_seconds", "Age of the oldest change that a consumer has not dealt with",
               labels, static_cast<double>(consumer.lag_ms) / 1e3);
    sink.Gauge("kvstore_consumer_lost",
               "1: changes that the consumer had not dealt with are not kept any more", labels,
               consumer.position.empty() ? 1 : 0);
  }
}

}  // namespace kvstore
