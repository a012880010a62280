#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operate/alarms.h"
#include "operate/leader.h"
#include "shardops/promote_options.h"
#include "shardops/status.h"

namespace kvstore::operate {

/// Does for hosts that have come back what the runbook says, where that is switched on and loses nothing:
///
///   a master that was restarted   It took writes, and came up read-only: it takes writes again, if its slave
///                                 was asked, and has nothing that it lacks.
///   a master that was promoted    The leader that has begun this died before it took writes: it takes them.
///   a master that was replaced    It takes writes: it is fenced. It follows nobody: it follows the new one.
///   a slave that was to lead      It was cut off from its master, which lives after all: it follows again.
///
/// Never opens a host that somebody else may have fenced, never changes which host leads, and never makes a
/// host new (kv shards replace-slave --discard). One for each leadership. Externally synchronised.
class Repairs {
 public:
  /// Returns what a person should know of.
  ///
  /// reports  What an inspection of all hosts has found, moments ago.
  std::vector<Finding> Handle(Leader& leader, const std::vector<shardops::HostReport>& reports);

 private:
  using Clock = std::chrono::steady_clock;

  void HandleMaster(Leader& leader, const shardops::HostReport& report, const PairRecord& record);
  /// Whether a master that is read-only took writes when this process saw it last, and was started again
  /// since.
  bool WasRestarted(const shardops::HostReport& report);
  /// Opens a master that was restarted, unless somebody has fenced it.
  void OpenRestarted(Leader& leader, const shardops::HostReport& report);
  /// Deals with a slave that was the master before kv operate has replaced it.
  ///
  /// master  The report about its master; null if there is none.
  void TakeBack(Leader& leader, const shardops::HostReport& report, const shardops::HostReport* master);
  void FenceReplaced(Leader& leader, const shardops::HostReport& report);
  /// Deals with a slave of which kv operate has begun to make the master, and the master answers again.
  ///
  /// master  The report about its master; null if there is none.
  void GiveUp(Leader& leader, const shardops::HostReport& report, const shardops::HostReport* master);
  /// Completes what the maps say about a pair.
  ///
  /// text  What `subject` is made to do: "follow MySQL001B".
  void Complete(Leader& leader, const shardops::Pair& pair, shardops::PromoteOptions options,
                const Host& subject, const std::string& text);
  /// Whether something is to be tried for a host now: not again and again.
  bool IsDue(const Host& host);

  std::map<Host, uint64_t> started_;  // HostState::started_s of masters when they were seen taking writes
  std::map<Host, Clock::time_point> tried_;
  std::map<Host, std::string> failed_;  // what a person should know, until the next attempt
};

}  // namespace kvstore::operate
