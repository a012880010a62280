#include "cli/command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "assembly/config.h"
#include "cli/amounts.h"
#include "cli/escape.h"
#include "cli/usage.h"
#include "json_api/answers.h"
#include "kvstore_api/connect.h"

namespace kvstore::cli {
namespace {

/// Returns what a person may do about an error; empty if the message says it all.
std::string_view NextStep(const absl::Status& status) {
  const std::string message(status.message());
  const auto says = [&](std::string_view text) { return message.find(text) != std::string::npos; };
  if (says("write to standard output")) {
    return "only the answer is lost: the command may have made its changes, so check before you run it again";
  }
  if (says("there is no store at"))
    return "name another directory with --data, or make one: kv dataset create NAME";
  if (says("is open in process")) return "stop that process, or name another directory with --data";
  if (says("dataset: there is none named")) return "see which there are: kv dataset list";
  if (says("there is no report")) return "see which there are: kv report list";
  if (says("timestamp is")) return "";
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      if (says(".log") || says("checksum mismatch")) {
        return "restore a backup; or see what of a damaged log can be kept: kv repair. Nothing was changed";
      }
      return "the file is damaged: restore it from a backup; nothing was changed";
    case absl::StatusCode::kResourceExhausted:
      return says("No space") ? "free some space, then try again" : "";
    default:
      return "";
  }
}

/// The exit codes of commands whose help does not describe its own.
constexpr char kExitCodes[] =
    "Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.";

void AddExitCodes(CLI::App& app) {
  if (const std::string footer = app.get_footer(); footer.find("Exit code") == std::string::npos) {
    app.footer(footer + (footer.empty() ? "" : "\n\n") + kExitCodes);
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) AddExitCodes(*command);
}

}  // namespace

Config Globals::ReadConfiguration() const {
  if (data.empty() && config.empty()) {
    throw Failure{absl::InvalidArgumentError(
        "--data: name the store's directory with --data DIR, or in KV_DATA; or a file with --config; or a "
        "server with --server")};
  }
  Config read;
  if (!config.empty()) read = OrFail(ReadConfig(config));
  if (!data.empty()) read.store.data = data;
  return read;
}

ConnectOptions Globals::ServerConnection() const {
  ConnectOptions options{.plain_token = plain_token};
  if (timeout_ms) options.deadline_ms = *timeout_ms;
  // A token is not taken from the command line, which every user of the machine can see.
  if (!token_file.empty()) {
    std::ifstream in(token_file);
    std::getline(in, options.token);
    if (!in && options.token.empty()) {
      throw Failure{
          absl::NotFoundError("--token-file: cannot read a token from the first line of " + token_file)};
    }
  } else if (const char* token = std::getenv("KV_TOKEN"); token != nullptr) {
    options.token = token;
  }
  if (use_tls || !tls.ca.empty() || !tls.cert.empty()) options.tls = tls;
  return options;
}

std::unique_ptr<KVStore> Globals::OpenStore(bool create_if_missing) const {
  if (!server.empty()) return OrFail(Connect(server, ServerConnection()));
  OpenOptions options = StoreOptions();
  options.create_if_missing = create_if_missing;
  return OrFail(Open(options));
}

std::string Globals::Bytes(const std::string& argument) const {
  return escaped ? OrFail(Unescape(argument)) : argument;
}

std::vector<std::string> Globals::Bytes(const std::vector<std::string>& given) const {
  std::vector<std::string> bytes;
  for (const std::string& argument : given) bytes.push_back(Bytes(argument));
  return bytes;
}

WholeCommand::WholeCommand(const Globals& globals) {
  if (!globals.server.empty() && globals.timeout_ms) {
    scope_.emplace(std::chrono::milliseconds(*globals.timeout_ms));
  }
}

void OrFail(const absl::Status& status) {
  if (!status.ok()) throw Failure{status};
}

void PrintError(const absl::Status& status, bool json) {
  if (json) {
    WriteErr(ToLine(json_api::ErrorToJson(status)) + "\n");
    return;
  }
  // A list of mistakes has a line for each.
  std::string text;
  for (const auto line : absl::StrSplit(status.message(), '\n')) {
    text += fmt::format("{}{}", text.empty() ? "" : "\n", Escape(std::string(line)));
  }
  PrintErr("kv: {}: {}\n", absl::StatusCodeToString(status.code()), text);
  if (const std::string_view next = NextStep(status); !next.empty()) PrintErr("    {}\n", next);
}

void PrintJson(const Json& json) { WriteOut(ToLine(json) + "\n"); }

void AddGlobals(CLI::App& app, Globals& globals) {
  app.set_version_flag("--version", "kv " KV_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--data", globals.data, "Directory of the store")->envname("KV_DATA")->type_name("DIR");
  app.add_option("--config", globals.config, "Configuration file of the store: its directory, MySQL servers")
      ->envname("KV_CONFIG")
      ->type_name("FILE");
  app.add_option("--server", globals.server,
                 "Address of a server, host:port or unix:/path, instead of a store of this process")
      ->envname("KV_SERVER")
      ->type_name("ADDR");
  TakeDuration(app.add_option("--timeout-ms", globals.timeout_ms,
                              "How long a call to a server may take, 10000 by default; for get --all and "
                              "scan, all calls together")
                   ->envname("KV_TIMEOUT_MS"),
               std::numeric_limits<uint32_t>::max());
  app.add_option("--token-file", globals.token_file, "File with the token for the server; or set KV_TOKEN")
      ->type_name("FILE");
  app.add_flag("--plain-token", globals.plain_token,
               "Send the token even to another machine without encryption, where others may read it");
  app.add_flag("--tls", globals.use_tls, "Encrypt the connection to the server");
  app.add_option("--tls-ca", globals.tls.ca,
                 "File with the authorities that the server's certificate is verified against")
      ->envname("KV_TLS_CA")
      ->type_name("FILE");
  app.add_option("--tls-cert", globals.tls.cert, "File with the client's certificate")
      ->envname("KV_TLS_CERT")
      ->type_name("FILE");
  app.add_option("--tls-key", globals.tls.key, "File with the key of --tls-cert")
      ->envname("KV_TLS_KEY")
      ->type_name("FILE");
  app.add_option("--tls-name", globals.tls.server_name, "Name to expect in the server's certificate")
      ->type_name("NAME");
  app.add_flag("--json", globals.json, "Answer in JSON, one object a line, as in docs/json-lines.md");
  app.add_flag("--escaped", globals.escaped,
               "Row keys, columns and values are given with \\xNN for any byte and \\\\ for \\");
}

void FinishCommands(CLI::App& app) {
  AddExitCodes(app);
  RefuseBadNumbers(app);
  app.failure_message(
      [](const CLI::App* program, const CLI::Error& error) { return ExplainUsage(*program, error); });
}

}  // namespace kvstore::cli
