#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/options.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/json.h"
#include "kvstore_api/kvstore.h"
#include "registry/config.h"

/// What the commands of `kv` share. A command is a function that adds itself to the program; it reports
/// failure by throwing Failure, which only main catches.
namespace kvstore::cli {

/// Options that stand before or after any command.
struct Globals {
  std::string data;    ///< Directory of the store.
  std::string config;  ///< File that configures it.
  std::string server;  ///< Address of a server, instead of the two.
  std::string token_file;
  ClientTls tls;
  bool use_tls = false;
  std::optional<uint32_t> timeout_ms;
  bool plain_token = false;  ///< As in ConnectOptions.
  bool json = false;
  bool escaped = false;  ///< Arguments are given with \xNN escapes.

  /// What data and config say. Throws Failure.
  Config ReadConfiguration() const;
  OpenOptions StoreOptions() const { return ReadConfiguration().store; }
  /// What server and the options with it say. Throws Failure.
  ConnectOptions ServerConnection() const;
  /// Opens the store, or connects to it. Throws Failure.
  std::unique_ptr<KVStore> OpenStore(bool create_if_missing) const;
  /// An argument as bytes. Throws Failure if it is escaped badly.
  std::string Bytes(const std::string& argument) const;
  std::vector<std::string> Bytes(const std::vector<std::string>& arguments) const;
};

/// While it lives all calls of a server together may take what --timeout-ms says, if it was given: for
/// commands that read page after page, which else a server could keep busy for ever.
class WholeCommand {
 public:
  explicit WholeCommand(const Globals& globals);

 private:
  std::optional<CallScope> scope_;
};

/// Ends the command with exit code 1 and `status` on standard error.
struct Failure {
  absl::Status status;
};

/// The value, or Failure.
template <typename T>
T OrFail(absl::StatusOr<T> result) {
  if (!result.ok()) throw Failure{result.status()};
  return *std::move(result);
}
void OrFail(const absl::Status& status);

/// "kv: CODE: message" and what to do next, on standard error; JSON under --json.
void PrintError(const absl::Status& status, bool json);
/// One line of JSON on standard output.
void PrintJson(const Json& json);

/// The whole program. `globals` must outlive the app.
void AddCommands(CLI::App& app, Globals& globals);

void AddRowCommands(CLI::App& app, Globals& globals);
void AddDatasetCommands(CLI::App& app, Globals& globals);
void AddObjectCommands(CLI::App& app, Globals& globals);
void AddMappingCommands(CLI::App& app, Globals& globals);
void AddIdCommands(CLI::App& app, Globals& globals);
void AddShardsCommands(CLI::App& app, Globals& globals);
void AddImportCommand(CLI::App& app, Globals& globals);
void AddExecCommand(CLI::App& app, Globals& globals);
void AddServeCommand(CLI::App& app, Globals& globals);
void AddMigrateCommands(CLI::App& app, Globals& globals);
void AddStatCommand(CLI::App& app, Globals& globals);
void AddConfigCommands(CLI::App& app, Globals& globals);
void AddBenchCommand(CLI::App& app, Globals& globals);
void AddRepairCommand(CLI::App& app, Globals& globals);
void AddCompletionCommand(CLI::App& app);

}  // namespace kvstore::cli
