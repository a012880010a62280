#pragma once

#include "absl/status/status.h"

/// Writes of threads that have others to serve: they are carried out at once, or not at all.
namespace kvstore {

/// While it lives, the writes that this thread makes to an embedded engine end with a WouldWaitError, having
/// done nothing, where they would wait for a device, for room in memory, or for a lock whose holder may wait
/// for one of these. A batch may have carried out some of its entries by then; each says for itself. The
/// caller makes what is left on a thread that may wait. Writes to other backends take no notice: they always
/// wait.
class PromptScope {
 public:
  PromptScope();
  ~PromptScope();
  PromptScope(const PromptScope&) = delete;
  PromptScope& operator=(const PromptScope&) = delete;

 private:
  const bool before_;
};

/// Returns whether this thread is in such a scope.
bool IsPrompt();

/// The error (UNAVAILABLE) of a write in such a scope that would have to wait. Nothing was done.
absl::Status WouldWaitError();
bool IsWouldWait(const absl::Status& status);

}  // namespace kvstore
