#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/chaos/clients.h"
#include "tests/chaos/fleet.h"
#include "tests/chaos/settings.h"
#include "tests/support/random.h"

namespace kvstore::testing::chaos {

/// Injects faults into hosts and processes, at most two at a time, and undoes each some seconds later. Must
/// be used by the thread that made the fleet.
class Faults {
 public:
  Faults(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings);

  /// Injects faults until the time of the settings is over, and then undoes those that are active.
  void Run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Active {
    Clock::time_point due;
    std::string target;
    std::function<void()> undo;
  };
  struct Kind {
    uint64_t weight;
    void (Faults::*begin)();
  };

  bool IsActive(const std::string& target) const;
  /// Returns a server without an active fault; nullopt if there is none.
  std::optional<size_t> FreeServer();
  /// Returns a pair of the maps without an active fault; nullopt if there is none.
  std::optional<shardops::Pair> FreePair();
  void Begin(const std::string& target, const std::string& what, std::chrono::milliseconds time,
             std::function<void()> undo);
  void UndoDue(Clock::time_point now);
  std::chrono::milliseconds RandomTime(uint64_t least, uint64_t most);
  /// Runs a command of an operator who repairs what a fault has broken.
  Outcome Repair(const std::vector<std::string>& command);

  void KillServer();
  void StopServer();
  void PauseServer();
  void FailPoint();
  void KillMaster();
  void KillSlave();
  void PauseMaster();
  void LoseSecond();
  void ZooKeeperAway();
  /// Tells the histories that what was written to the shards of a pair since then may be lost.
  void AnnounceLoss(const shardops::Maps& maps, const shardops::Pair& pair, Clock::time_point since);

  Fleet& fleet_;
  Tenants& tenants_;
  Log& log_;
  const Settings& settings_;
  Random random_;
  std::vector<Kind> kinds_;
  std::vector<Active> active_;
};

}  // namespace kvstore::testing::chaos
