#pragma once

#include <functional>
#include <string_view>

namespace kvstore {

/// Marks a named step of a long operation, at which a test can stop, kill or break it. The steps of
/// migrations are listed in docs/migrating.md. Costs a load from memory if no hook is set.
///
/// If the environment variable KV_FAIL_POINT is NAME, the process is killed (SIGKILL) when it reaches NAME;
/// if it is hang:NAME, each thread that reaches NAME hangs there for ever.
void Reached(std::string_view name);

/// For tests: sets the hook that is called with the name of each point that any thread reaches; null removes
/// it. A thread that reached a point just before may still call the hook set earlier. Thread-safe.
void SetFailPointHook(std::function<void(std::string_view)> hook);

}  // namespace kvstore
