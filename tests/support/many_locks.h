#pragma once

/// Switches ThreadSanitizer's detection of deadlocks off. A migration's endpoint on RocksDB holds all 1,024
/// row locks at once when it changes its state, and the detector gives up beyond 64. One source of each
/// program in which that happens must include this.
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_options() { return "detect_deadlocks=0"; }
#endif
