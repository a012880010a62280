#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operate/alarms.h"
#include "operate/leader.h"
#include "shardops/status.h"

namespace kvstore::operate {

/// Does for hosts that have come back what the runbook says, where that is switched on and loses nothing:
///
///   a master that was restarted   It took writes, and came up read-only: it takes writes again.
///   a master that was replaced    It takes writes: it is fenced. It follows nobody: it follows the new one.
///
/// Never makes a host new (kv shards replace-slave --discard). Externally synchronised.
class Repairs {
 public:
  /// Returns what a person should know of.
  ///
  /// reports  What an inspection of all hosts has found, moments ago.
  std::vector<Finding> Handle(Leader& leader, const std::vector<shardops::HostReport>& reports);

 private:
  using Clock = std::chrono::steady_clock;

  /// Opens a master that this process has seen taking writes, and that was started again since.
  void Reopen(Leader& leader, const shardops::HostReport& report);
  /// Deals with a slave that was the master before kv operate has replaced it.
  void TakeBack(Leader& leader, const shardops::HostReport& report);
  /// Runs a promotion that completes what the maps say. Tells `text`, and how it ended.
  void Complete(Leader& leader, const shardops::Pair& pair, const Host& subject, const std::string& text);
  /// Whether something is to be tried for a host now: not again and again.
  bool IsDue(const Host& host);

  std::map<Host, uint64_t> started_;  // when masters that took writes were started, in ms since 1970
  std::map<Host, Clock::time_point> tried_;
  std::map<Host, std::string> failed_;  // what a person should know, until the next attempt
};

}  // namespace kvstore::operate
