#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "assembly/config.h"
#include "assembly/secrets.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "client/token.h"
#include "json/json_text.h"
#include "server/call/access.h"
#include "server/check_options.h"

/// kv config: checks the configuration file. kv token: makes tokens for callers of a server.
namespace kvstore::cli {
namespace {

/// Checks a configuration as a whole, including the files that it names. Throws Failure.
void Check(const Config& config) {
  OrFail(server::CheckOptions(config.server));
  for (const PlacedBackend& backend : AllBackends(config.store)) {
    if (backend.config->type != kRemote) continue;
    const RemoteServer remote = OrFail(OptionsOf<RemoteServer>(backend));
    const auto token = client::TokenFor(remote.address, remote.options);
    if (!token.ok()) {
      OrFail(absl::InvalidArgumentError(
          fmt::format("config: {}: {}", backend.path, std::string(token.status().message()))));
    }
  }
}

void AddCheck(CLI::App& group, Globals& globals) {
  auto file = std::make_shared<std::string>();
  CLI::App* check = group.add_subcommand("check",
                                         "Check a file without opening anything; lists every mistake, and "
                                         "warns of files that others can read or change and should not");
  check->add_option("file", *file, "The file; default: that of --config");
  check->footer("Example: kv config check /etc/kvstore/kv.json");
  check->callback([file, &globals] {
    const std::string& path = file->empty() ? globals.config : *file;
    if (path.empty()) WrongUsage("file is missing: name it, or give it with --config or in KV_CONFIG");
    const Config config = OrFail(ReadConfig(path));
    Check(config);
    const std::vector<std::string> exposed = OrFail(ExposedSecrets(path, config));
    if (globals.json) {
      PrintJson({{"ok", true}, {"warnings", exposed}});
    } else {
      for (const std::string& warning : exposed) PrintErr("kv: warning: {}\n", warning);
      Print("{}: good\n", path);
    }
  });
}

std::string RandomToken() {
  std::array<unsigned char, 24> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) throw Failure{absl::InternalError("no random numbers")};
  std::string token = "kv_";
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace

void AddConfigCommands(CLI::App& app, Globals& globals) {
  CLI::App* group =
      app.add_subcommand("config", "The configuration file; docs/configuration.md has its fields");
  group->require_subcommand(1);
  AddCheck(*group, globals);
  group->footer("Example: kv config check /etc/kvstore/kv.json");

  struct Arguments {
    std::string name;
    std::vector<std::pair<std::string, std::string>> rights;
    std::vector<std::pair<std::string, uint64_t>> limits;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* token = app.add_subcommand(
      "token", "Make a token for a caller of a server, and the entry for the server's file of tokens");
  token->add_option("name", args->name, "Who the token is for")->required();
  token->add_option("--right", args->rights,
                    "DATASET, or DATASET/REPORT, followed by read, write or admin; * is every dataset");
  token->add_option(
      "--limit", args->limits,
      "calls_per_s, bytes_per_s (of requests and answers) or max_calls (in flight), followed by "
      "the most that the caller may have; together, over all doors");
  token->footer(R"(The token is shown once: the file holds only its SHA-256.

Example:
  kv token web --right '*' read --right events write
  kv token batch --right '*' read --limit calls_per_s 500 --limit max_calls 20)");
  token->callback([args, &globals] {
    const std::string secret = RandomToken();
    Json rights = Json::object();
    for (const auto& [dataset, right] : args->rights) {
      if (rights.contains(dataset)) WrongUsage(fmt::format("--right: '{}' is given twice", dataset));
      rights[dataset] = right;
    }
    Json entry = {{"name", args->name}, {"sha256", server::TokenDigest(secret)}, {"rights", rights}};
    for (const auto& [limit, most] : args->limits) {
      if (entry.contains("limits") && entry["limits"].contains(limit)) {
        WrongUsage(fmt::format("--limit: '{}' is given twice", limit));
      }
      entry["limits"][limit] = most;
    }
    OrWrongUsage(server::AccessList::Parse(TextOf(Json{{"tokens", {entry}}})));
    if (globals.json) {
      PrintJson({{"ok", true}, {"token", secret}, {"entry", entry}});
    } else {
      Print("token (for KV_TOKEN, or \"authorization: Bearer ...\"): {}\nentry: {}\n", secret, TextOf(entry));
    }
  });
}

}  // namespace kvstore::cli
