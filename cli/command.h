#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
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
  std::string data;                    ///< Directory of the store.
  std::string config;                  ///< The configuration file.
  std::string server;                  ///< Address of a server, in place of `data` and `config`.
  std::string token_file;
  ClientTls tls;
  bool use_tls = false;
  std::optional<uint32_t> timeout_ms;
  bool plain_token = false;  ///< As in ConnectOptions.
  bool json = false;
  bool escaped = false;  ///< Row keys, columns and values are given with \xNN escapes.

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

/// Prints "kv: CODE: message", and what to do next, on standard error; JSON under --json.
void PrintError(const absl::Status& status, bool json);
/// Prints one line of JSON on standard output.
void PrintJson(const Json& json);

/// Adds the options that may stand before or after any command. `globals` must outlive the app.
void AddGlobals(CLI::App& app, Globals& globals);
/// Completes the commands' helps, checks and usage errors in a common way. Call it after the last command was
/// added.
void FinishCommands(CLI::App& app);

}  // namespace kvstore::cli
