#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "assembly/cached_type.h"
#include "backends/cached/protocol/caches.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/table.h"

/// kv cache: the caches in front of a backend.
namespace kvstore::cli {
namespace {

struct Arguments {
  std::string backend;
  std::vector<std::string> stopped;
};

std::unique_ptr<cached::Caches> Open(const Globals& globals, const Arguments& args) {
  return OrFail(OpenCaches(globals.StoreOptions(), args.backend));
}

/// One of the states that the help of `status` explains.
std::string StateOf(const cached::ServerState& server, uint64_t list) {
  if (server.suspended) return "suspended";
  if (!server.problem.ok()) return "does not answer";
  if (!server.guard) return "new";
  return server.guard->trusted && server.guard->list == list ? "trusted" : "in quarantine";
}

Json ToJson(const cached::ServerState& server, uint64_t list) {
  Json json = {{"server", server.name}, {"caches", Name(server.kind)}, {"state", StateOf(server, list)}};
  if (server.suspended) json["suspended_ms"] = server.suspended_ms;
  if (!server.problem.ok()) json["problem"] = std::string(server.problem.message());
  return json;
}

void AddStatus(CLI::App& group, Globals& globals, const std::shared_ptr<Arguments>& args) {
  CLI::App* status =
      group.add_subcommand("status", "Show the cache servers that all processes use, and their state");
  status->footer(R"(States of a server:
  trusted          reads are answered by it
  in quarantine    nothing that it had counts (it is new, was suspended, has lost its memory, or everything was
                   dropped); reads are answered by it when the quarantine is over
  new              no process has told it yet that it is used
  suspended        a process could not reach it, so nobody reads it; it is used again when it answers
  does not answer  this command cannot reach it

Example: kv --config kv.json cache status

Exit codes: 0 all are trusted; 1 failed, or the servers, the lease and the quarantine in force are not those of the
configuration, or a server is not trusted; 2 wrong usage.)");
  status->callback([args, &globals] {
    const auto caches = Open(globals, *args);
    const auto state = OrFail(caches->Look());
    bool all_trusted = true;
    for (const auto& server : state.servers)
      all_trusted = all_trusted && StateOf(server, state.view.list) == "trusted";
    if (globals.json) {
      Json servers = Json::array();
      for (const auto& server : state.servers) servers.push_back(ToJson(server, state.view.list));
      PrintJson({{"ok", true},
                 {"list", state.view.list},
                 {"off", state.view.changing != 0},
                 {"as_configured", state.as_configured},
                 {"servers", std::move(servers)}});
    } else {
      Table table({"SERVER", "CACHES", "STATE", "SINCE", "PROBLEM"});
      for (const auto& server : state.servers) {
        table.Add({server.name, std::string(Name(server.kind)), StateOf(server, state.view.list),
                   server.suspended ? UtcText(server.suspended_ms) : "-",
                   server.problem.ok() ? "-" : std::string(server.problem.message())});
      }
      table.Print();
      Print("list {} of servers\n", state.view.list);
    }
    if (state.view.changing != 0) {
      throw Failure{
          absl::FailedPreconditionError("caches: no cache is read, because a change of the list of servers "
                                        "was cut short: complete it with kv cache use")};
    }
    if (!state.as_configured) {
      throw Failure{
          absl::FailedPreconditionError("caches: the configuration names other servers, or another lease or "
                                        "quarantine, than those in force: "
                                        "kv cache use brings them into force")};
    }
    if (!all_trusted) throw Failure{absl::FailedPreconditionError("caches: not all servers are trusted")};
  });
}

void AddUse(CLI::App& group, Globals& globals, const std::shared_ptr<Arguments>& args) {
  CLI::App* use =
      group.add_subcommand("use", "Make the cache servers of the configuration those that all processes use");
  use->add_option(
      "--stopped", args->stopped,
      "A server of the list before that does not answer because it was stopped for good: 'memcached "
      "HOST:PORT' or 'redis HOST:PORT'");
  use->footer(
      R"(Until the quarantine is over, all reads go to the backend. Processes need not be restarted; those whose
configuration names other servers use the list in force, too.

Example: kv --config kv.json cache use)");
  use->callback([args, &globals] {
    OrFail(
        Open(globals, *args)->UseServers(std::set<std::string>(args->stopped.begin(), args->stopped.end())));
    PrintDone(globals, "the servers of the configuration are in force");
  });
}

void AddDrop(CLI::App& group, Globals& globals, const std::shared_ptr<Arguments>& args) {
  CLI::App* drop = group.add_subcommand("drop", "Forget all that is cached");
  drop->footer(
      R"(For after a write that did not come through KVStore: a restored backup, a promotion that has lost writes, an edit by
hand. Until the quarantine is over, all reads go to the backend.

Example: kv --config kv.json cache drop)");
  drop->callback([args, &globals] {
    OrFail(Open(globals, *args)->Drop());
    PrintDone(globals, "nothing of before is cached");
  });
}

}  // namespace

void AddCacheCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand("cache", "The cache servers in front of a backend; docs/caches.md");
  group->require_subcommand(1);
  group->fallthrough();
  auto args = std::make_shared<Arguments>();
  group->add_option("--backend", args->backend, "The backend of type cached; default: the only one");
  AddStatus(*group, globals, args);
  AddUse(*group, globals, args);
  AddDrop(*group, globals, args);
  group->footer("Example: kv --config kv.json cache status");
  globals.without_server[group] =
      "this command works on cache servers and ZooKeeper, not through a server of KVStore; name the "
      "configuration with --config FILE";
}

}  // namespace kvstore::cli
