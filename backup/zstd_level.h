#pragma once

namespace kvstore::backup {

/// How hard zstd packs units and logs: what its documentation calls the default, most of the compression for
/// a third of the time.
inline constexpr int kZstdLevel = 3;

}  // namespace kvstore::backup
