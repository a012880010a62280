#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "tests/chaos/clients.h"
#include "tests/chaos/fleet.h"
#include "tests/chaos/settings.h"
#include "tests/support/random.h"

namespace kvstore::testing::chaos {

/// After the disturbance: with what the commands themselves name, all comes in order again, within a bound.
/// What does not is a failure. Of the thread that made the fleet.
class Recovery {
 public:
  Recovery(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings)
      : fleet_(fleet),
        tenants_(tenants),
        log_(log),
        bound_(settings.bound),
        random_(settings.seed * 31 + 2000) {}

  /// All hosts are as the maps and the catalog say, and no shards move.
  void MendFleet();
  /// Every migration is driven to an end.
  void EndMigrations();
  /// Every dataset is read and written through every server, and has the settings that are shown.
  void UseAll();
  /// The same tables, masters and slaves as the maps say.
  void CheckHosts();
  /// Reads every key once more, for the history.
  void ReadAll();

 private:
  Outcome Do(const std::vector<std::string>& command);
  /// Commands of `kv` that a text names: "kv shards promote 127.0.0.1:3306 --emergency".
  static std::vector<std::vector<std::string>> NamedIn(const std::string& text);
  /// Gives a command, and those that its answer names.
  void Follow(const std::vector<std::string>& command);
  /// A master that may answer alone, for which status names settings and no command.
  void WaitForSlaves(const std::string& text);
  /// Goes on with moves of shards, or gives them up. Whether there are none.
  bool EndMoves();
  /// One step of a dataset's migration. Whether it has none.
  bool EndMigration(const Tenant& tenant);
  /// Tries until it succeeds; else that is a failure.
  bool Within(const std::string& what, const std::function<absl::Status()>& attempt);

  Fleet& fleet_;
  Tenants& tenants_;
  Log& log_;
  const std::chrono::seconds bound_;
  Random random_;
};

}  // namespace kvstore::testing::chaos
