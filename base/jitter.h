#pragma once

#include <chrono>

/// Random waits, so that many processes which have seen the same event do not all act at the same moment.
/// Thread-safe.
namespace kvstore {

/// Returns a wait of `about`, give or take a fifth.
std::chrono::milliseconds Jittered(std::chrono::milliseconds about);

/// Returns a wait before a retry: any between 0 and `first` after one failure ("full jitter"); the upper end
/// doubles with each further failure, up to `most`.
///
/// failures  How many attempts have failed in a row, 1 or more.
std::chrono::milliseconds FullJitter(std::chrono::milliseconds first, std::chrono::milliseconds most,
                                     unsigned failures);

/// Returns a wait of at least half of `most`, and at most that ("equal jitter").
std::chrono::milliseconds EqualJitter(std::chrono::milliseconds most);

}  // namespace kvstore
