#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

/// Arithmetic on MariaDB's GTID positions: "0-1-17,1-4-3" is a list of domain-server-sequence, at most one of
/// each domain. Sequences of a domain count up, whichever server writes. Parts that do not parse are left
/// out. CountMissing and CountBeyond take MySQL's sets (gtid_set.h) as well: the text shows which it is.
namespace kvstore::shardops {

/// The name of a transaction.
struct Gtid {
  uint64_t domain = 0;
  uint64_t server = 0;
  uint64_t sequence = 0;
  friend bool operator==(const Gtid&, const Gtid&) = default;
};

/// A position to which transactions are added one after another. A value.
class GtidPosition {
 public:
  GtidPosition() = default;
  explicit GtidPosition(std::string_view text);

  /// Whether the transaction, or a later one of its domain, was added.
  bool Has(const Gtid& gtid) const { return gtid.sequence <= LastOf(gtid.domain); }
  /// The sequence of the last transaction of a domain; 0 if none was added.
  uint64_t LastOf(uint64_t domain) const;
  void Add(const Gtid& gtid) { last_[gtid.domain] = gtid; }
  std::string ToString() const;

 private:
  std::map<uint64_t, Gtid> last_;  // by domain
};

/// Returns how many transactions of the position, or set, `has` are not in `lacks`.
uint64_t CountMissing(std::string_view has, std::string_view lacks);
/// The same of one domain only; MySQL's sets have none, and count as a whole.
uint64_t CountMissingOfDomain(std::string_view has, std::string_view lacks, uint64_t domain);

/// Returns how many transactions one server has that another lacks. Both arguments are the servers'
/// @@gtid_binlog_state: the last sequence that each server has written in each domain, as far as it is in
/// that binary log. Or they are MySQL's sets of all transactions (gtid_executed), of which the result is
/// exact, whatever `unknown` is.
///
/// unknown  Whether a server of `has` that `lacks` does not mention counts as one transaction; else it counts
///          as none.
uint64_t CountBeyond(std::string_view has, std::string_view lacks, bool unknown);

/// Returns the part of `position` whose domains the position `logged` does not mention, without what the
/// server with the ID `server` wrote.
std::string PositionOfOtherDomains(std::string_view position, std::string_view logged, uint64_t server);

/// Returns the set of MySQL's GTIDs that has the transactions of both.
std::string UnionOfSets(std::string_view one, std::string_view other);

/// Returns the position that has, of each domain, the later one of the two positions.
std::string LatestOfEachDomain(std::string_view one, std::string_view other);

}  // namespace kvstore::shardops
