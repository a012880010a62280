#pragma once

/// For programs in which a migration's endpoint on RocksDB changes its state: it holds all 1,024 row locks at
/// once, and ThreadSanitizer's detector of deadlocks gives up beyond 64. Included by one source of each.
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_options() { return "detect_deadlocks=0"; }
#endif
