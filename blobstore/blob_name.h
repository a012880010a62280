#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace kvstore {

inline constexpr size_t kMaxBlobNameBytes = 512;
inline constexpr size_t kMaxBlobSegmentBytes = 200;

/// Returns INVALID_ARGUMENT with the rule that is broken unless the name follows those of BlobStore.
absl::Status CheckBlobName(std::string_view name);

/// Returns INVALID_ARGUMENT unless a name may begin with this prefix, which may end within a segment or be
/// empty.
absl::Status CheckBlobPrefix(std::string_view prefix);

}  // namespace kvstore
