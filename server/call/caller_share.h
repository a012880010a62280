#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

#include "server/call/quota.h"
#include "server/call/work_queue.h"

namespace kvstore::server {

/// One caller's calls and bytes in flight, as Admission counts them, and its queues for workers. Thread-safe.
struct CallerShare {
  explicit CallerShare(const std::string& who) : name(who), quota("caller '" + who + "'") {}

  /// The name that entries of the list of tokens give the caller, or the common name of its certificate where
  /// there is no list. Empty: the share of all callers without a name.
  const std::string name;
  std::atomic<size_t> calls{0};
  std::atomic<size_t> bytes{0};             ///< In memory: requests, and answers that were not sent yet.
  Quota quota;                              ///< Its limits in the list of tokens.
  std::atomic<size_t> resp_connections{0};  ///< Its open connections of the Redis protocol.
  WorkQueue queue;                          ///< For Core::workers.
  WorkQueue long_queue;                     ///< For Core::long_workers.
  WorkQueue report_queue;                   ///< For Core::report_workers.
};

}  // namespace kvstore::server
