#pragma once

#include "backends/rocksdb/engine.h"
#include "kvstore_api/metrics_sink.h"

namespace kvstore::rocks {

/// The counters and sizes of RocksDB that tell how it is. docs/operations.md says what each means.
void Describe(Engine& engine, MetricsSink& sink);

}  // namespace kvstore::rocks
