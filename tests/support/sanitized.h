#pragma once

namespace kvstore::testing {

/// Whether this program, and those that it starts, have a sanitizer. That takes memory of its own, many times
/// what a program takes, and keeps for a while what was freed: by how much a server grows says nothing then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace kvstore::testing
