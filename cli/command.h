#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "assembly/config.h"
#include "json/json.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/connect.h"
#include "kvstore_api/kvstore.h"

/// Code that the commands of `kv` share. A command is a function that adds itself to the program; it reports
/// failure by throwing Failure, which only main catches.
namespace kvstore::cli {

/// Options that may stand before or after any command.
struct Globals {
  std::vector<std::string> arguments;  ///< All arguments of the process, its name first.
  // Once the command line was read, the callbacks of commands find here which store was chosen (ChooseStore).
  std::string data;    ///< Directory of the store.
  std::string config;  ///< The configuration file.
  std::string server;  ///< Address of a server, in place of `data` and `config`.
  std::string token_file;
  ClientTls tls;
  bool use_tls = false;
  std::optional<uint32_t> timeout_ms;
  bool plain_token = false;  ///< As in ConnectOptions.
  bool json = false;
  bool escaped = false;  ///< Row keys, columns and values are given with \xNN escapes.
  bool verbose = false;  ///< Print also what is logged for information.

  /// The commands that cannot work through a server, each with those below it, and which options to use
  /// instead. An empty text is for a command below such a one that can.
  std::map<const CLI::App*, std::string> without_server;
  /// The commands that may have a server and a configuration, each for something else.
  std::set<const CLI::App*> server_and_config;
  bool takes_server = true;  ///< Whether the command that was given can work through a server.

  /// Returns the configuration that `data` and `config` describe. Throws Failure.
  Config ReadConfiguration() const;
  OpenOptions StoreOptions() const { return ReadConfiguration().store; }
  /// Returns the options of the connection to `server`. Throws Failure.
  ConnectOptions ServerConnection() const;
  /// Opens the store, or connects to it. Throws Failure.
  std::unique_ptr<KVStore> OpenStore(bool create_if_missing) const;
  /// Returns an argument as bytes. Throws Failure if one of its escapes is invalid.
  std::string Bytes(const std::string& argument) const;
  std::vector<std::string> Bytes(const std::vector<std::string>& arguments) const;
};

/// While it exists, all calls of the command together may take --timeout-ms, if that was given. For commands
/// that read page after page: otherwise a server could keep them busy for ever.
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

/// Returns the value, or throws Failure.
template <typename T>
T OrFail(absl::StatusOr<T> result) {
  if (!result.ok()) throw Failure{result.status()};
  return *std::move(result);
}
void OrFail(const absl::Status& status);

/// Ends the command with exit code 2 and this text on standard error: the command line is wrong, whatever a
/// store holds. Throws CLI::ValidationError.
[[noreturn]] void WrongUsage(const std::string& problem);
/// The same, with the name of the option in front.
[[noreturn]] void WrongUsage(const std::string& option, const absl::Status& status);
/// Returns the value, or ends the command as WrongUsage does.
template <typename T>
T OrWrongUsage(absl::StatusOr<T> result) {
  if (!result.ok()) WrongUsage(std::string(result.status().message()));
  return *std::move(result);
}
template <typename T>
T OrWrongUsage(const std::string& option, absl::StatusOr<T> result) {
  if (!result.ok()) WrongUsage(option, result.status());
  return *std::move(result);
}

/// Prints "kv: CODE: message", and what to do next, on standard error; JSON under --json.
void PrintError(const absl::Status& status, bool json);
/// Prints one line of JSON on standard output.
void PrintJson(const Json& json);
/// Prints what a command has done; with --json, that it was done.
void PrintDone(const Globals& globals, const std::string& done);

/// Adds the options that may stand before or after any command. `globals` must outlive the app.
void AddGlobals(CLI::App& app, Globals& globals);
/// Completes the commands' helps, checks and usage errors in a common way. Call it after the last command was
/// added.
void FinishCommands(CLI::App& app);

}  // namespace kvstore::cli
