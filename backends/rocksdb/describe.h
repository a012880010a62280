#pragma once

#include "backends/rocksdb/engine/engine.h"
#include "base/metrics_sink.h"

namespace kvstore::rocks {

/// Reports the counters and sizes of RocksDB as metrics. docs/operations.md says what each means.
void Describe(Engine& engine, MetricsSink& sink);

}  // namespace kvstore::rocks
