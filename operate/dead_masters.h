#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "operate/alarms.h"
#include "operate/leader.h"
#include "operate/lookout.h"
#include "shardops/maps.h"

namespace kvstore::operate {

/// No pair is promoted a second time within this: whatever killed two masters would kill the third.
inline constexpr uint64_t kBetweenPromotionsMs = 3'600'000;

/// Puts slaves in the place of masters that are dead, where that is switched on and certain to lose nothing.
/// Externally synchronised.
///
/// A slave is promoted if
///   1. the master is dead by what this process and another one see (Judge);
///   2. the slave has all that any client was told of, by the rule of emergency promotions (promote.h);
///   3. the configured program has fenced the master; or, without one, no commit is acknowledged by it alone:
///      rule 2 holds only for masters that wait for their slave for ever, and a host comes back read-only
///      (SwitchOn checks that);
///   4. nothing was promoted in this pair within the hour;
///   5. kv operate is on for the pair, and this process leads: all that it changes in ZooKeeper checks that.
/// A promotion that the leader before has begun is completed.
class DeadMasters {
 public:
  /// Decides about each master that does not answer, and acts. Returns what a person should know of.
  std::vector<Finding> Handle(Leader& leader, std::span<const shardops::Pair> pairs,
                              std::span<const Silence> silences);

  /// How many promotions have succeeded, and failed or were refused, in this process.
  uint64_t promoted() const { return promoted_; }
  uint64_t failed() const { return failed_; }

 private:
  /// Returns what a person should know of.
  std::string HandleOne(Leader& leader, const shardops::Pair& pair, const Silence& silence);
  std::string Promote(Leader& leader, const shardops::Pair& pair, PairRecord record, const std::string& why);
  /// Adds an event, unless the last one about this pair was the same.
  void TellOnce(Leader& leader, const shardops::Pair& pair, Event event);

  std::map<shardops::Pair, std::string> told_;  // the last event about each pair
  uint64_t promoted_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace kvstore::operate
