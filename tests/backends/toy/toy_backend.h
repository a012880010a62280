#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "backend_api/backend.h"
#include "base/mutex.h"

namespace kvstore::testing {

struct ToyDataset;

/// What a toy backend stores. It outlives the backend, as files outlive a process.
struct ToyDisk {
  Mutex mutex;
  std::map<uint64_t, std::shared_ptr<ToyDataset>> datasets ABSL_GUARDED_BY(mutex);  // by incarnation
};

/// The smallest backend that passes tests/backend_suite: all three shapes in maps, behind one lock for each
/// dataset, and without migrations. docs/backends.md says of each part what a real one does there.
std::unique_ptr<Backend> OpenToyBackend(std::shared_ptr<ToyDisk> disk);

}  // namespace kvstore::testing
