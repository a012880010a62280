#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "backend_api/backend.h"
#include "base/mutex.h"

namespace kvstore::testing {

/// The stored content of one dataset. The members of other shapes stay empty.
struct ToyDataset {
  DatasetSpec spec;
  uint64_t clock = 0;  ///< The last timestamp that was assigned.
  /// The value of each cell, by row, column and ~timestamp: in the order in which they are read.
  std::map<std::tuple<std::string, std::string, uint64_t>, std::string> cells;
  std::map<uint64_t, Object> objects;
  std::map<uint32_t, uint64_t> locals;           ///< The last local ID of each shard.
  std::map<std::string, uint64_t> requests;      ///< The object that a request ID has made.
  std::map<MappingPosition, uint64_t> mappings;  ///< The sequence of each entry.
};

/// The storage of a toy backend. It outlives the backend, as files outlive a process.
struct ToyDisk {
  Mutex mutex;
  std::map<uint64_t, ToyDataset> datasets ABSL_GUARDED_BY(mutex);  ///< By incarnation.
};

/// The smallest backend that passes tests/backend_suite: all three shapes in ordered maps, behind one lock,
/// and without migrations. docs/backends.md says of each part what a real one does there.
std::unique_ptr<Backend> OpenToyBackend(std::shared_ptr<ToyDisk> disk);

}  // namespace kvstore::testing
