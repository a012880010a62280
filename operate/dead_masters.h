#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "operate/alarms.h"
#include "operate/leader.h"
#include "operate/lookout.h"
#include "shardops/maps.h"

namespace kvstore::operate {

/// Nothing is promoted in a pair a second time within this: whatever killed two masters would kill the third.
inline constexpr uint64_t kBetweenPromotionsMs = 3'600'000;

/// Puts slaves in the place of masters that are dead, where that is switched on and certain to lose nothing.
/// Externally synchronised.
///
/// A slave is promoted if
///   1. the master is dead by what this process and another one see (Judge), moments ago;
///   2. the slave has all that any client was told of, by the rule of emergency promotions (promote.h);
///   3. the configured program has fenced the master; or, without one, no commit is acknowledged by it alone:
///      rule 2 holds only for masters that wait for their slave for ever;
///   4. kv operate has promoted nothing in this pair within the hour;
///   5. it is on for the pair, and this process leads: that this is to be done is written down first, which
///      fails otherwise, and so does each change of the maps.
/// A promotion that the leader before has begun is completed.
class DeadMasters {
 public:
  /// Decides about each master that does not answer, and promotes at most one slave: what is known of the
  /// other masters is old by then. Returns what a person should know of.
  std::vector<Finding> Handle(Leader& leader, std::span<const shardops::Pair> pairs,
                              std::span<const Silence> silences);

  /// Forgets what was told: another leadership begins.
  void Forget() { attempts_.clear(); }
  /// Whether the last call has left something for the next one, which should be made at once.
  bool has_more() const { return has_more_; }
  /// How many promotions have succeeded, and failed or were refused, in this process.
  uint64_t promoted() const { return promoted_; }
  uint64_t failed() const { return failed_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// The events that were told of a pair since its master died, and when the next attempt may be made.
  struct Attempts {
    std::set<std::string> told;
    Clock::time_point next;  // not before this
  };

  /// Returns what a person should know of.
  std::string HandleOne(Leader& leader, const shardops::Pair& pair, const Silence& silence);
  std::string Promote(Leader& leader, const shardops::Pair& pair, PairRecord record, const std::string& why);
  /// Has the master fenced, if that is configured and was not done yet. Returns what went wrong.
  std::string FenceMaster(Leader& leader, const shardops::Pair& pair, PairRecord& record);
  /// Adds an event, unless it was added since this master died.
  void TellOnce(Leader& leader, const shardops::Pair& pair, Event event);

  std::map<shardops::Pair, Attempts> attempts_;
  bool has_more_ = false;
  bool acted_ = false;  // a promotion was tried in this call
  uint64_t promoted_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace kvstore::operate
