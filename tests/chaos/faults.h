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

/// What happens to hosts and processes: at most two at a time, each undone some seconds later. Of the thread
/// that made the fleet.
class Faults {
 public:
  Faults(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings);

  /// Goes on until the time is over; then undoes what there is.
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
  /// A server that nothing has happened to; none if there is none.
  std::optional<size_t> FreeServer();
  /// A pair that nothing has happened to, as the maps have it.
  std::optional<shardops::Pair> FreePair();
  void Begin(const std::string& target, const std::string& what, std::chrono::milliseconds time,
             std::function<void()> undo);
  void UndoDue(Clock::time_point now);
  std::chrono::milliseconds Some(uint64_t least, uint64_t most);
  /// A command of an operator who mends.
  Outcome Mend(const std::vector<std::string>& command);

  void KillServer();
  void StopServer();
  void PauseServer();
  void FailPoint();
  void KillMaster();
  void KillSlave();
  void PauseMaster();
  void LoseSecond();
  void ZooKeeperAway();
  /// All that is on the shards of a pair may have lost what was written since then.
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
