#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/mysql/changes/row_events.h"
#include "shardmap/shard_range.h"

namespace kvstore::mysql {

/// A place between two transactions: the last transaction of each domain before it. It means the same on all
/// servers that have these transactions, whatever their files are. A value.
class LogVector {
 public:
  LogVector() = default;
  /// Parses "0-1-17,1-4-3", as servers have it. DATA_LOSS if it is anything else.
  static absl::StatusOr<LogVector> Parse(std::string_view text);
  std::string ToString() const;

  /// Whether the transaction is the last one of its domain.
  bool EndsWith(const LogGtid& gtid) const {
    const auto found = last_.find(gtid.domain);
    return found != last_.end() && found->second == gtid;
  }
  /// Whether the transaction, or a later one of its domain, is before this place.
  bool Has(const LogGtid& gtid) const;
  /// Whether all that is before `other` is before this place.
  bool Has(const LogVector& other) const;
  void Add(const LogGtid& gtid) { last_[gtid.domain] = gtid; }
  /// Adds those transactions of the other that are later.
  void Add(const LogVector& other);
  const std::map<uint32_t, LogGtid>& last() const { return last_; }
  friend bool operator==(const LogVector&, const LogVector&) = default;

 private:
  std::map<uint32_t, LogGtid> last_;  // by domain
};

/// A follower's place in the log of a pair of servers.
struct LogPlace {
  LogVector done;               ///< All of these transactions were told.
  std::optional<LogGtid> part;  ///< A part of this one, too:
  uint64_t rows = 0;            ///< so many rows of the dataset's tables.
  uint64_t at_ms = 0;           ///< When the last write before it was made; never decreases.
  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

/// A place in the logs of all servers that a dataset is on. It is stored by followers, so its form is fixed:
///
///   4d 01  varint(made_ms)  varint(whole_ms)  varint(pairs) { text(master) text(slave) varint(domain)
///     varint(complete_ms) varint(at_ms) varint(rows)
///     varint(transactions) { varint(domain) varint(server) varint(sequence) }... }...  text(seal)
///
/// A text is varint(size) and its bytes. The first transaction is the one of which a part was told, if `rows`
/// is not 0.
struct ChangePosition {
  struct Pair {
    std::string master;   ///< The host that was the master,
    std::string slave;    ///< and the slave, when the position was made.
    uint32_t domain = 0;  ///< The pair's gtid_domain_id then.
    /// All writes that were acknowledged there before this time, by the server's clock, are before the place.
    uint64_t complete_ms = 0;
    LogPlace place;
    friend bool operator==(const Pair&, const Pair&) = default;
  };
  /// When it was made, by the clock that is most behind of the servers. Its pairs are those of the map in
  /// force then.
  uint64_t made_ms = 0;
  /// All that was acknowledged anywhere before this time is before the position; 0: that was never so.
  uint64_t whole_ms = 0;
  std::vector<Pair> pairs;
  std::string seal = {};  ///< Vouches for the names of the hosts (host_seal.h).

  std::string Encode() const;
  /// OUT_OF_RANGE for a position of another backend, INVALID_ARGUMENT if it does not decode.
  static absl::StatusOr<ChangePosition> Decode(std::string_view bytes);

  friend bool operator==(const ChangePosition&, const ChangePosition&) = default;
};

/// A pair of the map in force.
struct MappedPair {
  Host master;
  Host slave;
  std::optional<uint32_t> domain;  ///< nullopt if the master did not say it.
};
/// Finds for each of `pairs` its place in a position that may have been made before promotions and moves:
/// the pair that has a host in common with it, or else the only one that is left of its domain. nullopt for a
/// pair that the position does not know: it has got its first shards since.
std::vector<std::optional<size_t>> MatchPairs(const ChangePosition& position,
                                              const std::vector<MappedPair>& pairs);

}  // namespace kvstore::mysql
