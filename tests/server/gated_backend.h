#pragma once

#include <absl/base/thread_annotations.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_api/backend.h"
#include "base/mutex.h"

namespace kvstore::testing {

/// Decides which calls of a GatedBackend fail, and how. A real backend refuses calls, or leaves them in
/// doubt, for moments only, too short for a test. Thread-safe.
class Gate {
 public:
  /// Returns the error of a call on this dataset and row, object or mapping; OK if it is carried out.
  using Answer = std::function<absl::Status(std::string_view dataset, std::string_view key)>;

  /// Sets the answer to all calls from now on; null: all are carried out.
  void Set(Answer answer);
  /// Returns the answer to a call.
  absl::Status Ask(std::string_view dataset, std::string_view key);
  /// Returns how many calls were not carried out.
  int refusals() const;

  /// Records a put that was carried out.
  void Note(std::string_view dataset, std::string_view row, std::string_view value);
  /// Returns the values that were put to a row, and "(deleted)", in the order in which that was carried out.
  std::vector<std::string> Done(const std::string& dataset, const std::string& row) const;

 private:
  mutable Mutex mutex_;
  Answer answer_ ABSL_GUARDED_BY(mutex_);
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> done_ ABSL_GUARDED_BY(mutex_);
};

/// Returns an answer that refuses calls on this dataset, because it migrates.
Gate::Answer Migrates(std::string dataset);

/// The key of which a gate is asked before changes are read.
inline constexpr std::string_view kChangesKey = "changes of the dataset";

/// Returns a backend that keeps what is put in memory, and asks a gate before each row, object and mapping.
/// Its changes are positions alone: another one after each put to the row "r".
///
/// waits  Capabilities::waits.
std::unique_ptr<Backend> MakeGatedBackend(std::shared_ptr<Gate> gate, bool waits = false);

}  // namespace kvstore::testing
