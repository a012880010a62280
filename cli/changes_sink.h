#pragma once

#include <absl/base/thread_annotations.h>

#include <atomic>
#include <condition_variable>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "blobstore/descriptor.h"
#include "export/child_program.h"

namespace kvstore::cli {

/// A program that gets what is printed, and prints the tokens of what it has dealt with, one in a line. It
/// has standard output as long as this exists. Externally synchronised.
class ChangesSink {
 public:
  /// Starts the command by sh. Throws Failure.
  explicit ChangesSink(const std::string& command);
  /// Kills it, if it runs.
  ~ChangesSink();
  ChangesSink(const ChangesSink&) = delete;
  ChangesSink& operator=(const ChangesSink&) = delete;

  /// Returns the token that it printed last; empty: none yet.
  std::string Dealt();
  /// Ends its input, and waits, for a minute at most, until it has dealt with it and ended. Returns how it
  /// ended. Standard output is again what it was. Must be called once.
  absl::Status Finish();

 private:
  /// Reads its output to the end, or until it is told to stop.
  void ReadTokens();

  Descriptor own_out_;  // standard output as it was
  Descriptor from_;
  std::optional<exports::ChildProgram> child_;
  Mutex mutex_;
  std::condition_variable ended_;
  std::string dealt_ ABSL_GUARDED_BY(mutex_);
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;  // its output
  std::atomic<bool> stop_{false};
  std::thread reader_;
};

}  // namespace kvstore::cli
