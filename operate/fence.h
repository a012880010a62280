#pragma once

#include <functional>

#include "absl/status/status.h"
#include "operate/options.h"
#include "shardmap/shard_map.h"

namespace kvstore::operate {

/// Has the configured program (OperateOptions::fence) switch a host off, and waits for its end. OK: the host
/// is certainly off. INTERNAL with what the program said if it failed; DEADLINE_EXCEEDED if it took too long,
/// and was ended; FAILED_PRECONDITION if there is no such program.
///
/// options  With a fence.
/// waits    Is called every two seconds until the program has ended.
absl::Status RunFence(const OperateOptions& options, const Host& host, const std::function<void()>& waits);

}  // namespace kvstore::operate
