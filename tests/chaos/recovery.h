#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "tests/chaos/clients.h"
#include "tests/chaos/fleet.h"
#include "tests/chaos/settings.h"
#include "tests/support/random.h"

namespace kvstore::testing::chaos {

/// Brings everything in order again after the disturbance, with the commands that the program's own messages
/// name. What is not in order within the bound of the settings is a failure. Must be used by the thread that
/// made the fleet.
class Recovery {
 public:
  Recovery(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings)
      : fleet_(fleet),
        tenants_(tenants),
        log_(log),
        bound_(settings.bound),
        random_(settings.seed * 31 + 2000) {}

  /// Runs commands until status names no problem of a host, and no shards move.
  void RepairFleet();
  /// Drives every migration to its end.
  void EndMigrations();
  /// Reads and writes every dataset through every server, and checks that it has the settings that it shows.
  void UseAll();
  /// Runs commands until `kv shards check` finds nothing.
  void CheckHosts();
  /// Reads every key once more, for the history.
  void ReadAll();

 private:
  Outcome RunCommand(const std::vector<std::string>& command);
  /// Returns the commands that a text names: "kv shards promote 127.0.0.1:3306 --emergency".
  static std::vector<std::vector<std::string>> CommandsIn(const std::string& text);
  /// Runs a command, and then those that its answer names.
  void RunWithAdvice(const std::vector<std::string>& command);
  /// Sets what status proposes for a master that acknowledges commits without its slave: these are settings,
  /// and no command.
  void WaitForSlaves(const std::string& text);
  /// Resumes, cancels or finishes all moves of shards. Returns whether there were none.
  bool EndMoves();
  /// Takes one step towards the end of a dataset's migration. Returns whether it has none any more.
  bool EndMigration(const Tenant& tenant);
  /// Repeats `attempt` until it succeeds; it is a failure if it does not within the bound.
  bool Within(const std::string& what, const std::function<absl::Status()>& attempt);

  Fleet& fleet_;
  Tenants& tenants_;
  Log& log_;
  const std::chrono::seconds bound_;
  Random random_;
};

}  // namespace kvstore::testing::chaos
