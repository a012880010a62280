#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

/// Sets of MySQL's GTIDs: "UUID:1-17:20,UUID:3" is a list of servers, each with the numbers of transactions
/// that began there. From MySQL 8.3 on, numbers may be preceded by a tag ("UUID:tag:1-3"), and are then of a
/// sequence of their own.
namespace kvstore::shardops {

/// A set of transactions. A value.
class GtidSet {
 public:
  GtidSet() = default;
  /// Reads a set. Leaves out what does not parse, and passes over line breaks.
  explicit GtidSet(std::string_view text);

  /// Whether a text is a set of MySQL's GTIDs, and not a position of MariaDB's. An empty text is neither.
  static bool IsOne(std::string_view text) { return text.find(':') != std::string_view::npos; }

  /// Adds all transactions of another set.
  void Add(const GtidSet& other);
  /// Removes all transactions of another set.
  void Remove(const GtidSet& other);
  /// Returns the lowest number from `from` on that is not in the set, of a server's UUID, or "UUID:tag".
  uint64_t LowestMissing(const std::string& name, uint64_t from = 1) const;
  /// Returns the transactions that have their numbers from this server, but for those with this tag.
  GtidSet OfServer(const std::string& uuid, std::string_view but_tag) const;
  /// Returns how many transactions of this set another one lacks.
  uint64_t CountMissingIn(const GtidSet& other) const;
  /// Returns the set in the server's form, with servers in the order of their UUIDs.
  std::string ToString() const;

 private:
  /// Disjoint intervals that do not touch: the last number of each, by its first.
  using Intervals = std::map<uint64_t, uint64_t>;

  static void AddInterval(Intervals& to, uint64_t first, uint64_t last);

  /// By "UUID", or "UUID:tag".
  std::map<std::string, Intervals> of_;
};

}  // namespace kvstore::shardops
