#include "cli/command.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "cli/amounts.h"
#include "cli/answers.h"
#include "cli/escape.h"
#include "cli/usage.h"
#include "client/connect.h"
#include "registry/config.h"

namespace kvstore::cli {
namespace {

/// What a person may want to do about an error; empty if the message says it all.
std::string_view NextStep(const absl::Status& status) {
  const std::string message(status.message());
  const auto says = [&](std::string_view text) { return message.find(text) != std::string::npos; };
  if (says("write to standard output")) {
    return "only the answer is lost: what the command was to change may be done, so look before running it "
           "again";
  }
  if (says("there is no store at"))
    return "name another directory with --data, or make one: kv dataset create NAME";
  if (says("is open in process")) return "stop that process, or name another directory with --data";
  if (says("dataset: there is none named")) return "see which there are: kv dataset list";
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

constexpr char kDescription[] =
    "One store, three shapes of data: rows (wide column), objects (JSON under 64-bit IDs), mappings (ordered "
    "lists of IDs).";

constexpr char kFooter[] = R"(Begin here:
  kv --data /tmp/store dataset create events --max-versions 50
  kv --data /tmp/store put events user:7 click=pin:3 view=pin:9
  kv --data /tmp/store get events user:7
  kv get --help                 what else a read can do

  kv --data /tmp/store serve    the same store for others: kv --server 127.0.0.1:7400 get events user:7

The store's directory may also be given as KV_DATA in the environment, the configuration as KV_CONFIG, a server as
KV_SERVER. A server goes before both; --data goes before what the configuration says.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage. When the reader of standard output has
gone (kv scan events --all | head), kv ends by SIGPIPE without a word, which shells call 141.)";

/// Of commands whose help does not say more of them.
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
  // Not on the command line, which everybody on the machine can see.
  if (!token_file.empty()) {
    std::ifstream in(token_file);
    std::getline(in, options.token);
    if (!in && options.token.empty()) {
      throw Failure{absl::NotFoundError("--token-file: there is no token in " + token_file)};
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

std::vector<std::string> Globals::Bytes(const std::vector<std::string>& arguments) const {
  std::vector<std::string> bytes;
  for (const std::string& argument : arguments) bytes.push_back(Bytes(argument));
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
    WriteErr(ToLine(ErrorToJson(status)) + "\n");
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

void AddCommands(CLI::App& app, Globals& globals) {
  app.description(kDescription);
  app.set_version_flag("--version", "kv " KV_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--data", globals.data, "Directory of the store")->envname("KV_DATA")->type_name("DIR");
  app.add_option("--config", globals.config, "File that configures the store: its directory, MySQL servers")
      ->envname("KV_CONFIG")
      ->type_name("FILE");
  app.add_option("--server", globals.server,
                 "Address of a server, host:port or unix:/path, instead of a store of this process")
      ->envname("KV_SERVER")
      ->type_name("ADDR");
  TakeDuration(app.add_option("--timeout-ms", globals.timeout_ms,
                              "How long a call of a server may take, 10000 if it is not given; of get --all "
                              "and scan, all calls")
                   ->envname("KV_TIMEOUT_MS"),
               std::numeric_limits<uint32_t>::max());
  app.add_option("--token-file", globals.token_file, "File with the token for the server; or KV_TOKEN has it")
      ->type_name("FILE");
  app.add_flag("--plain-token", globals.plain_token,
               "Send the token to another machine without encryption, too, where others may see it");
  app.add_flag("--tls", globals.use_tls, "Encrypt the connection to the server");
  app.add_option("--tls-ca", globals.tls.ca, "Certificates that the server's is checked against")
      ->envname("KV_TLS_CA")
      ->type_name("FILE");
  app.add_option("--tls-cert", globals.tls.cert, "Our certificate, and ...")
      ->envname("KV_TLS_CERT")
      ->type_name("FILE");
  app.add_option("--tls-key", globals.tls.key, "... its key")->envname("KV_TLS_KEY")->type_name("FILE");
  app.add_option("--tls-name", globals.tls.server_name, "The name in the server's certificate")
      ->type_name("NAME");
  app.add_flag("--json", globals.json, "Answer in JSON, one object a line, as in docs/json-lines.md");
  app.add_flag("--escaped", globals.escaped,
               "Row keys, columns and values are given with \\xNN for any byte and \\\\ for \\");
  AddRowCommands(app, globals);
  AddDatasetCommands(app, globals);
  AddObjectCommands(app, globals);
  AddMappingCommands(app, globals);
  AddIdCommands(app, globals);
  AddShardsCommands(app, globals);
  AddImportCommand(app, globals);
  AddExecCommand(app, globals);
  AddServeCommand(app, globals);
  AddMigrateCommands(app, globals);
  AddStatCommand(app, globals);
  AddConfigCommands(app, globals);
  AddRepairCommand(app, globals);
  AddBenchCommand(app, globals);
  AddCompletionCommand(app);
  // Behind the commands, which would inherit it.
  app.footer(kFooter);
  AddExitCodes(app);
  RefuseBadNumbers(app);
  app.failure_message(
      [](const CLI::App* program, const CLI::Error& error) { return ExplainUsage(*program, error); });
}

}  // namespace kvstore::cli
