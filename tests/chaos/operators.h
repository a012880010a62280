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

/// Runs a command of an operator and writes down its answer. A refusal is an answer; a crash, a hang and an
/// exit code beyond 0 and 1 are failures.
Outcome Operate(Log& log, const std::string& who, const std::vector<std::string>& command,
                const Disturbance& disturbance = {});

/// What may be done next with the migration of a dataset, by its own status; empty if it has none, or no
/// server tells.
struct MigrationState {
  std::string phase;
  std::string problem;
  std::vector<std::string> next;
  std::string truth;  ///< The side that serves.
};
MigrationState LookAtMigration(Fleet& fleet, size_t server, const std::string& dataset);

/// Gives a command of a migration to one server after the other, until it is the one that is at it.
///
/// ask  Gives it; `server` is how such a command begins.
Outcome AskServers(Fleet& fleet, Random& random,
                   const std::function<Outcome(const std::vector<std::string>& server)>& ask);

/// Operators, each a thread, who give commands that cross each other's. Some of the commands are killed, or
/// stopped for longer than a session of ZooKeeper lives.
class Operators {
 public:
  static constexpr size_t kThreads = 3;

  Operators(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings);
  ~Operators() { Stop(); }
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  /// They finish the command that they are at.
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
