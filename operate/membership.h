#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordination/zookeeper.h"
#include "json/json.h"

namespace kvstore::operate {

/// A process of `kv operate`, with what it says to the others.
struct Member {
  std::string id;
  std::string who;       ///< "ann@ops1, process 4711"
  uint64_t said_ms = 0;  ///< When, since 1970, by the clock of ZooKeeper's servers.
  Json says;
};

/// The result of a meeting of all processes: which one leads, and what the others say.
struct Meeting {
  bool leads = false;  ///< Whether this process is the leader.
  /// A step for the leader's transactions, which holds only as long as nobody has taken the leadership over.
  ZooKeeperStep still_leads;
  std::string leader;          ///< The leader, as Member::who; empty: there is none yet.
  std::vector<Member> others;  ///< All but this process.
  uint64_t now_ms = 0;         ///< The time by the clock of ZooKeeper's servers.
};

/// This process among the processes of `kv operate` of a fleet, of which one leads. Externally synchronised.
///
/// Below ROOT/operate in ZooKeeper:
///   members/ID  what a process says; ephemeral
///   leader      {"id", "who"} of the leader. Its version counts the leaders: whoever takes the leadership
///               over, because the member of that ID is gone, sets it at the version that was seen. So a
///               leader that was stopped and goes on cannot do anything whose transactions check the version.
class Membership {
 public:
  /// zookeeper  Must outlive this.
  /// root       The fleet's node.
  /// who        Names this process to people.
  Membership(ZooKeeper& zookeeper, std::string root, std::string who);

  /// Says something to the others, hears what they say, and takes the leadership over if nobody has it.
  /// UNAVAILABLE if ZooKeeper cannot be reached: this process must not act then.
  absl::StatusOr<Meeting> Meet(const Json& says);
  /// Tells the others that this process works at something that takes long, so that it keeps the leadership
  /// (see FindLeader). It says nothing of the masters: what it saw of them is old by then.
  /// UNAVAILABLE if ZooKeeper cannot be reached.
  absl::Status SayBusy() { return Say(Json::object()).status(); }
  /// Gives the leadership up, so that another process takes it at once.
  void Leave();

 private:
  std::string PathOf(const std::string& id) const { return root_ + "/operate/members/" + id; }
  std::string LeaderPath() const { return root_ + "/operate/leader"; }
  /// Writes what this process says, and returns when it was written.
  absl::StatusOr<uint64_t> Say(const Json& says);
  absl::StatusOr<std::vector<Member>> ReadOthers();
  /// Fills in who leads.
  absl::Status FindLeader(Meeting& meeting);

  ZooKeeper& zookeeper_;
  const std::string root_;
  const std::string who_;
  const std::string id_;
};

/// Reads the members and who leads them, for somebody who is not one of them.
absl::StatusOr<Meeting> ReadMeeting(ZooKeeper& zookeeper, const std::string& root);

}  // namespace kvstore::operate
