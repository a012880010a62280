#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kvstore::cached {

/// Says which keys of a cache server can be trusted; the server itself stores it. Whoever reads or writes a
/// key reads the guard after that, and what they did counts only if it is still the guard that they knew.
struct Guard {
  /// A dataset that has left the backend, and may have come back.
  struct Dataset {
    uint64_t epoch = 0;    ///< How often it has left; part of its keys.
    bool trusted = false;  ///< Its quarantine is over: reads may be answered.
    friend bool operator==(const Dataset&, const Dataset&) = default;
  };

  /// Chosen at random; part of all keys. A server that has lost its memory gets another one.
  uint64_t number = 0;
  bool trusted = false;  ///< Its quarantine is over: reads may be answered.
  uint64_t list = 0;     ///< The list of servers (View::list) that the guard was made or changed for.
  std::map<uint64_t, Dataset> left;  ///< By incarnation.

  friend bool operator==(const Guard&, const Guard&) = default;
};

/// Makes it the guard of a server whose keys are worth nothing.
///
/// list  that of a view that holds now.
void Renew(Guard& guard, uint64_t list);

/// Whether reads of a dataset may be answered.
bool Trusts(const Guard& guard, uint64_t incarnation);
/// The name on the server of the key of an ID; what all names under a guard begin with.
std::string KeyName(const Guard& guard, uint64_t incarnation, uint64_t id);
std::string KeyPrefix(const Guard& guard);

std::string ToText(const Guard& guard);
/// Nullopt for a text that is no guard's, or that of a later version.
std::optional<Guard> ParseGuard(std::string_view text);

}  // namespace kvstore::cached
