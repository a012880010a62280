#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

namespace kvstore::server {

/// A caller, and what is in flight for it, as Admission counts it. Thread-safe.
struct CallerShare {
  explicit CallerShare(std::string who) : name(std::move(who)) {}

  /// Of the entries of the list of tokens, or of the client's certificate where there is no list; empty: of
  /// all who have none.
  const std::string name;
  std::atomic<size_t> calls{0};
  std::atomic<size_t> bytes{0};  ///< Of requests, and of answers that were not sent yet.
};

}  // namespace kvstore::server
