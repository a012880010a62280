#include "server/call/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>

namespace kvstore::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// Collects the figures that other parts describe, a family for each name.
class Gathering : public MetricsSink {
 public:
  void Gauge(std::string_view name, std::string_view help, const Labels& labels, double value) override {
    ClientMetric& metric = Add(name, help, labels, MetricType::Gauge);
    metric.gauge.value = value;
  }
  void Counter(std::string_view name, std::string_view help, const Labels& labels, double value) override {
    ClientMetric& metric = Add(name, help, labels, MetricType::Counter);
    metric.counter.value = value;
  }
  void MoveTo(std::vector<MetricFamily>& families) {
    for (auto& [name, family] : families_) families.push_back(std::move(family));
  }

 private:
  ClientMetric& Add(std::string_view name, std::string_view help, const Labels& labels, MetricType type) {
    MetricFamily& family = families_[std::string(name)];
    family.name = name;
    family.help = help;
    family.type = type;
    ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [label, value] : labels) metric.label.push_back({label, value});
    return metric;
  }

  std::map<std::string, MetricFamily> families_;
};

/// Seconds, from 50 us, which a read from memory takes, to 10 s.
const prometheus::Histogram::BucketBoundaries& Buckets() {
  static const prometheus::Histogram::BucketBoundaries kBuckets = {
      0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
      0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10};
  return kBuckets;
}

}  // namespace

Metrics::Metrics(const std::vector<std::string>& backends, std::function<void(MetricsSink&)> describe)
    : errors_(prometheus::BuildCounter()
                  .Name("kvstore_call_errors_total")
                  .Help("Calls that failed, by code")
                  .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("kvstore_call_seconds")
                   .Help("How long calls took in the server; streams until their end")
                   .Register(registry_)),
      request_bytes_(prometheus::BuildCounter()
                         .Name("kvstore_request_bytes_total")
                         .Help("Requests that were taken on")
                         .Register(registry_)),
      response_bytes_(prometheus::BuildCounter()
                          .Name("kvstore_response_bytes_total")
                          .Help("Answers")
                          .Register(registry_)),
      describe_(std::move(describe)) {
  backends_[""];
  for (const std::string& backend : backends) backends_[backend];
}

Metrics::OperationMetrics& Metrics::Find(BackendMetrics& all, const std::string& backend, Door door,
                                         Operation operation) {
  OperationMetrics& metrics = all[static_cast<size_t>(door)][static_cast<size_t>(operation)];
  std::call_once(metrics.made, [&] {
    const prometheus::Labels labels = {{"operation", std::string(Traits(operation).name)},
                                       {"backend", backend},
                                       {"door", std::string(Name(door))}};
    metrics.seconds = &seconds_.Add(labels, Buckets());
    metrics.request_bytes = &request_bytes_.Add(labels);
    metrics.response_bytes = &response_bytes_.Add(labels);
  });
  return metrics;
}

void Metrics::Count(Operation operation, std::string_view backend, Door door, double seconds,
                    const absl::Status& status, size_t request_bytes, size_t response_bytes) {
  auto found = backends_.find(backend);
  if (found == backends_.end()) found = backends_.find("");
  const OperationMetrics& counted = Find(found->second, found->first, door, operation);
  counted.seconds->Observe(seconds);
  counted.request_bytes->Increment(static_cast<double>(request_bytes));
  counted.response_bytes->Increment(static_cast<double>(response_bytes));
  if (status.ok()) return;
  errors_
      .Add({{"operation", std::string(Traits(operation).name)},
            {"backend", found->first},
            {"door", std::string(Name(door))},
            {"code", absl::StatusCodeToString(status.code())}})
      .Increment();
}

std::string Metrics::Text() const {
  std::vector<MetricFamily> families = registry_.Collect();
  Gathering gathering;
  describe_(gathering);
  gathering.MoveTo(families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace kvstore::server
