#include "cli/command.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "assembly/config.h"
#include "base/advice.h"
#include "cli/amounts.h"
#include "cli/arguments.h"
#include "cli/escape.h"
#include "cli/usage.h"
#include "cli/waiting.h"
#include "json_api/answers.h"
#include "kvstore_api/connect.h"

namespace kvstore::cli {
namespace {

/// Returns what a person may do about an error; empty if the message says it all.
std::string NextStep(const absl::Status& status) {
  if (auto advice = AdviceOf(status)) return *std::move(advice);
  const std::string message(status.message());
  const auto says = [&](std::string_view text) { return message.find(text) != std::string::npos; };
  if (says("write to standard output")) {
    return "only the answer is lost: a command that reads can be run again; one that writes may have made "
           "its "
           "changes, so check first";
  }
  if (says("there is no store at"))
    return "name another directory with --data, or make one: kv dataset create NAME";
  if (says("is open in process")) return "stop that process, or name another directory with --data";
  if (says("dataset: there is none named")) return "see which there are: kv dataset list";
  if (says("there is no report")) return "see which there are: kv report list";
  if (says("backend: there is none named")) {
    return "name the backend in a configuration, and give that with --config FILE, to the server if you use "
           "one; kv config check FILE checks it";
  }
  if (says("timestamp is") || says("docs/runbook.md")) return "";
  switch (status.code()) {
    case absl::StatusCode::kDataLoss:
      if (says("the backup 20"))
        return "see which backups are whole: kv backup list, kv backup verify --deep";
      // Nobody who knows the cause gave advice, or a server did, which does not travel.
      return "docs/operations.md says what to do about each loss of data; if a file is damaged, restore it "
             "from a backup";
    case absl::StatusCode::kUnauthenticated:
      // Other services have credentials of another kind.
      return says("token")
                 ? "give a token that the server knows, in KV_TOKEN or in a file with --token-file FILE; "
                   "kv token makes one"
                 : "";
    case absl::StatusCode::kUnavailable:
      return says("failed to connect") ? "is a server running there, and is it the address that --server, or "
                                         "KV_SERVER in the environment, should have?"
                                       : "";
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
  if (const std::string footer = app.get_footer(); footer.find("Exit codes:") == std::string::npos) {
    app.footer(footer + (footer.empty() ? "" : "\n\n") + kExitCodes);
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) AddExitCodes(*command);
}

/// Returns whether an option was given on the command line; in the environment does not count.
bool Given(const CLI::App& app, const std::string& option) {
  const auto& given = app.parse_order();
  return std::find(given.begin(), given.end(), app.get_option(option)) != given.end();
}

/// Decides between --data, --config, --server and their variables of the environment. The command line wins
/// over the environment; within the environment a server wins. Ends the command if the command line names a
/// server and also something else, which would silently not be used.
void ChooseStore(const CLI::App& app, Globals& globals) {
  const std::string* instead = nullptr;
  bool both = false;
  for (const CLI::App* at = &Innermost(app); at != nullptr; at = at->get_parent()) {
    const auto found = globals.without_server.find(at);
    if (instead == nullptr && found != globals.without_server.end()) instead = &found->second;
    both = both || globals.server_and_config.contains(at);
  }
  if (instead != nullptr && instead->empty()) instead = nullptr;
  const bool data = Given(app, "--data");
  const bool config = Given(app, "--config");
  globals.takes_server = instead == nullptr;
  if (Given(app, "--server")) {
    if (instead != nullptr) WrongUsage("--server: " + *instead);
    if (data || (config && !both)) {
      WrongUsage(
          fmt::format("--server: not together with {0}; give --server to use the store behind a server, or "
                      "{0} to open a store in this process",
                      data ? "--data" : "--config"));
    }
    return;
  }
  if (data || config || instead != nullptr) globals.server.clear();
  // The file names a directory.
  if (config && !data) globals.data.clear();
}

}  // namespace

Config Globals::ReadConfiguration() const {
  if (data.empty() && config.empty()) {
    WrongUsage(fmt::format(
        "--data is missing: name the store's directory with --data DIR, or in KV_DATA; or a configuration "
        "with --config FILE, or in KV_CONFIG{}",
        takes_server ? "; or a server with --server ADDR, or in KV_SERVER" : ""));
  }
  Config read;
  if (!config.empty()) read = OrFail(ReadConfig(config));
  if (!data.empty()) read.store.data = data;
  return read;
}

ConnectOptions Globals::ServerConnection() const {
  ConnectOptions options{.plain_token = plain_token};
  // With --json each line on standard error is an error.
  if (!json) options.on_lost = TellOfWaiting();
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
  return escaped ? OrWrongUsage(Unescape(argument)) : argument;
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

void WrongUsage(const std::string& problem) { throw CLI::ValidationError(problem); }

void WrongUsage(const std::string& option, const absl::Status& status) {
  throw CLI::ValidationError(option, std::string(status.message()));
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
  if (const std::string next = NextStep(status); !next.empty()) PrintErr("    {}\n", next);
}

void PrintJson(const Json& json) { WriteOut(ToLine(json) + "\n"); }

void PrintDone(const Globals& globals, const std::string& done) {
  if (globals.json) {
    PrintJson({{"ok", true}});
  } else {
    WriteOut(done + "\n");
  }
}

void AddGlobals(CLI::App& app, Globals& globals) {
  app.set_version_flag("--version", [&app]() -> std::string {
    // Any command would take this option of the program, also where one of its own was meant.
    if (!app.get_subcommands().empty()) WrongUsage(NoSuchOption(app, "--version"));
    return "kv " KV_VERSION;
  });
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--data", globals.data, "Directory of the store")->envname("KV_DATA")->type_name("DIR");
  app.add_option("--config", globals.config, "Configuration file of the store: its directory, MySQL servers")
      ->envname("KV_CONFIG")
      ->type_name("FILE");
  app.add_option("--server", globals.server,
                 "Address of a server, host:port or unix:/path, instead of --data and --config")
      ->envname("KV_SERVER")
      ->type_name("ADDR");
  TakeDuration(
      app.add_option(
             "--timeout-ms", globals.timeout_ms,
             "How long a call to a server may take, with its retries while the server "
             "cannot be reached, 10000 by default; where it is given, also how long all calls of a scan, "
             "or of get --all, may take together. Not used without a server")
          ->envname("KV_TIMEOUT_MS")
          ->check([](const std::string& text) {
            return text == "0" ? std::string("no call ends in 0 ms; leave it out for the default")
                               : std::string();
          }),
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
  app.add_flag("--verbose", globals.verbose,
               "Also print what is logged for information on standard error, not only warnings and errors");
  app.parse_complete_callback([&app, &globals] {
    ChooseStore(app, globals);
    if (globals.verbose) spdlog::set_level(spdlog::level::info);
  });
}

void FinishCommands(CLI::App& app) {
  AddExitCodes(app);
  RefuseBadNumbers(app);
  RefuseEmpty(app);
  app.failure_message(
      [](const CLI::App* program, const CLI::Error& error) { return ExplainUsage(*program, error); });
}

}  // namespace kvstore::cli
