#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvstore_api/backend.h"

namespace kvstore::testing {

/// What a MovingBackend says to its calls. A real backend refuses calls, or leaves them in doubt, for moments
/// that a test cannot hold on to. Thread-safe.
class Gate {
 public:
  /// What it says to a call on this dataset and row, object or mapping; OK: it is carried out.
  using Answer = std::function<absl::Status(std::string_view dataset, std::string_view key)>;

  /// Of all calls from now on; null: all are carried out.
  void Set(Answer answer);
  absl::Status Ask(std::string_view dataset, std::string_view key);
  /// How many calls were not carried out.
  int refusals() const;

  void Note(std::string_view dataset, std::string_view row, std::string_view value);
  /// The values that were put to a row, and "(deleted)", in the order in which that was carried out.
  std::vector<std::string> Done(const std::string& dataset, const std::string& row) const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  Answer answer_;
  int refusals_ = 0;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> done_;
};

/// Says that this dataset moves.
Gate::Answer Moves(std::string dataset);

/// A backend that keeps what is put in memory, and asks a gate before each row, object and mapping.
///
/// waits  Capabilities::waits.
std::unique_ptr<Backend> MakeMovingBackend(std::shared_ptr<Gate> gate, bool waits = false);

}  // namespace kvstore::testing
