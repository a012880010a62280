#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "kvstore_api/kvstore.h"

namespace kvstore {

struct OpenOptions {
  /// The directory of the embedded store.
  std::filesystem::path data;
  /// Make a store in `data` if there is none (it does not exist, or is an empty directory).
  bool create_if_missing = true;
  /// Memory for blocks read from files, all datasets together; taken as it is needed. The operating system
  /// keeps files in its memory too, compressed; a service that reads much gives this what it can spare.
  size_t cache_bytes = size_t{32} << 20;
};

/// Opens a store in this process. One process at a time can have a directory open.
///
/// NOT_FOUND            there is none and create_if_missing is not set.
/// UNAVAILABLE          another process has it open (the message names it), or the directory cannot be used.
/// FAILED_PRECONDITION  the directory is not ours, or of a newer format; nothing is changed.
/// DATA_LOSS            a file is damaged; the message says which. Nothing is repaired or removed.
///
///   auto store = kvstore::Open({.data = "/var/lib/events"});
///   if (!store.ok()) return store.status();
///   (*store)->PutRow("events", "user:7", {{{"click", "pin:3"}}}, {});
///
/// This is the one place that knows every backend: a new one is a line in open.cc.
absl::StatusOr<std::unique_ptr<KVStore>> Open(const OpenOptions& options);

}  // namespace kvstore
