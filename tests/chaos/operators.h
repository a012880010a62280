#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/clients.h"
#include "tests/chaos/fleet.h"
#include "tests/chaos/settings.h"

namespace kvstore::testing::chaos {

/// Runs a command of an operator and logs its answer. A refusal is an answer; a crash, a hang, and an exit
/// code other than 0 and 1 are failures of the run.
Outcome Operate(Log& log, const std::string& who, const std::vector<std::string>& command,
                const Disturbance& disturbance = {});

/// The state of the migration of a dataset, and the commands that are possible next, by its own status; empty
/// if there is no migration, or the server does not answer.
struct MigrationState {
  std::string phase;
  std::string problem;
  std::vector<std::string> next;
  std::string truth;  ///< The side that serves.
};
MigrationState ReadMigration(Fleet& fleet, size_t server, const std::string& dataset);

/// Gives a command about a migration to one server after the other, until it reaches the one that runs the
/// migration.
///
/// ask  Runs the command; `server` is how it must begin.
Outcome AskServers(Fleet& fleet, Random& random,
                   const std::function<Outcome(const std::vector<std::string>& server)>& ask);

/// The operators, each a thread, whose commands conflict with each other's. Some of the commands are killed,
/// or paused for longer than the timeout of a ZooKeeper session.
class Operators {
 public:
  static constexpr size_t kThreads = 3;

  Operators(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings);
  ~Operators() { Stop(); }
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  /// Stops the operators after their present commands.
  void Stop();

 private:
  /// One operator.
  class Operator;

  Fleet& fleet_;
  Tenants& tenants_;
  Log& log_;
  const Settings& settings_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace kvstore::testing::chaos
