#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operate/orchestrator.h"
#include "tests/shardops/pair.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// A fleet of one pair, a store of an application on it, and processes of kv operate, which are threads here.
class OperatedFleet {
 public:
  OperatedFleet();
  ~OperatedFleet();

  PairFleet& pair() { return pair_; }
  Router& store() { return *store_; }
  operate::PairRecords& records() { return records_; }

  /// Switches kv operate on for the pair.
  void SwitchOn();
  /// Starts a process, which looks at the master ten times a second.
  operate::Orchestrator& Start(operate::OperateOptions options = {}, bool dry_run = false);
  /// Stops a process as SIGTERM does.
  void Stop(operate::Orchestrator& process);
  void StopAll();
  /// Starts two processes, and waits until a process has seen that the slave has all that the master has: an
  /// emergency promotion needs that.
  void StartTwo(const operate::OperateOptions& options = {}, bool dry_run = false);
  /// Whether that was seen of the present master.
  bool IsInspected();

  /// Waits until the journal in ZooKeeper has an event of a kind whose text has these words. Returns it;
  /// fails the test if there is none.
  operate::Event AwaitEvent(const std::string& kind, const std::string& words);
  bool HasEvent(const std::string& kind, const std::string& words);
  /// Waits until there is an alarm with these words. False if there is none.
  bool AwaitAlarm(const std::string& words);
  /// Waits until the maps name this host the master.
  bool AwaitMaster(const Host& host);

  /// Writes a row, and retries for up to half a minute; whether it was acknowledged.
  bool Put(int row);
  /// Whether a row that was written is there.
  bool Has(int row);

 private:
  struct Process {
    std::unique_ptr<operate::Orchestrator> orchestrator;
    std::thread thread;
  };

  PairFleet pair_;
  TempDir dir_;
  std::unique_ptr<Router> store_;
  operate::PairRecords records_{pair_.fleet().zookeeper, pair_.fleet().root};
  std::vector<Process> processes_;
};

}  // namespace kvstore::testing
