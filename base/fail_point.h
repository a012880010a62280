#pragma once

#include <functional>
#include <string_view>

namespace kvstore {

/// A step of something long at which a test stops, kills or breaks it. Those of migrations are listed in
/// docs/migrating.md. Costs a load from memory where nobody has set a hook.
///
/// The environment variable KV_FAIL_POINT=NAME kills the process (SIGKILL) when NAME is reached, for tests of
/// processes.
void Reached(std::string_view name);

/// For tests: called with the name of each point that is reached, by any thread, also by one that has just
/// reached a point when another hook is set. Null: none. Thread-safe.
void SetFailPointHook(std::function<void(std::string_view)> hook);

}  // namespace kvstore
