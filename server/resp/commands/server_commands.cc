#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "kvstore_api/call_scope.h"
#include "server/resp/commands/groups.h"
#include "server/resp/commands/table.h"
#include "server/resp/commands/words.h"

/// Commands about the server: INFO, and COMMAND, which is made from the table of commands.
namespace kvstore::server::resp {
namespace {

/// How many elements Redis 7 has for a command.
constexpr size_t kCommandElements = 10;
/// COMMAND is answered at once and without admission, so its answer must not be large.
constexpr size_t kMaxNames = 1'000;

void Info(Session& session, Arguments, Encoder& out) { out.Verbatim(session.DescribeServer()); }

// ---- COMMAND ----

const Local* LocalOf(const Command& command) { return std::get_if<Local>(&command.handler); }

/// Returns the flags of a command, as Redis calls them.
std::vector<std::string_view> FlagsOf(const Command& command) {
  if (const Local* const local = LocalOf(command)) {
    std::vector<std::string_view> flags = {"fast", "loading", "stale"};
    if (local->for_strangers) flags.emplace_back("no_auth");
    return flags;
  }
  const bool writes = Traits(command.operation).right >= Right::kWrite;
  return {writes ? "write" : "readonly"};
}

void AppendCommand(const Command& command, Encoder& out) {
  out.Array(kCommandElements);
  out.Bulk(command.name);
  out.Integer(command.arity);
  const auto flags = FlagsOf(command);
  out.Set(flags.size());
  for (const std::string_view flag : flags) out.Simple(flag);
  out.Integer(command.keys.first);
  out.Integer(command.keys.last);
  out.Integer(command.keys.step);
  // Categories of access lists, hints for proxies, specifications of keys, subcommands: there are none.
  out.Set(0);
  for (int i = 0; i < 3; ++i) out.Array(0);
}

void AppendDocs(const Command& command, Encoder& out) {
  out.Bulk(command.name);
  out.Map(4);
  out.Bulk("summary");
  out.Bulk(command.summary);
  out.Bulk("since");
  out.Bulk("1.0.0");
  out.Bulk("group");
  out.Bulk(command.group);
  out.Bulk("syntax");
  out.Bulk(fmt::format("{}{}{}", command.name, command.words.empty() ? "" : " ", command.words));
}

/// Returns those of the named commands that there are.
std::vector<const Command*> Named(Arguments names) {
  std::vector<const Command*> found;
  for (const std::string_view name : names) {
    if (const Command* const command = FindCommand(name)) found.push_back(command);
  }
  return found;
}

void Commands(Session&, Arguments arguments, Encoder& out) {
  const std::string_view what = arguments.size() > 1 ? arguments[1] : "info";
  const Arguments names = arguments.subspan(std::min<size_t>(2, arguments.size()));
  if (names.size() > kMaxNames) {
    out.Error(fmt::format("ERR COMMAND: {} names were given, and the limit is {}; use several commands",
                          names.size(), kMaxNames));
  } else if (Is(what, "count") && names.empty()) {
    out.Integer(static_cast<int64_t>(AllCommands().size()));
  } else if (Is(what, "list") && names.empty()) {
    out.Array(AllCommands().size());
    for (const Command* command : AllCommands()) out.Bulk(command->name);
  } else if (Is(what, "docs")) {
    const auto found = names.empty() ? AllCommands() : Named(names);
    out.Map(found.size());
    for (const Command* command : found) AppendDocs(*command, out);
  } else if (Is(what, "info") && names.empty()) {
    out.Array(AllCommands().size());
    for (const Command* command : AllCommands()) AppendCommand(*command, out);
  } else if (Is(what, "info")) {
    out.Array(names.size());
    for (const std::string_view name : names) {
      const Command* const command = FindCommand(name);
      if (command == nullptr) {
        out.NullArray();
      } else {
        AppendCommand(*command, out);
      }
    }
  } else {
    out.Error("ERR COMMAND has the subcommands COUNT, DOCS [name ...], INFO [name ...], LIST");
  }
}

// ---- DBSIZE ----

absl::Status DbSize(StoreCall& call, Arguments, Encoder& out) {
  const auto specs = call.router.ListDatasets();
  if (!specs.ok()) return specs.status();
  uint64_t entries = 0;
  for (const DatasetSpec& spec : *specs) {
    if (!CheckRight(call.principal, spec.name, Right::kRead).ok()) continue;
    const auto stats = call.router.GetStats(spec.name);
    if (auto status = CheckCall(); !status.ok()) return status;
    // A dataset may have been dropped since, or its entry in the catalog may be unreadable.
    if (stats.ok()) entries += stats->approximate_entries;
  }
  out.Integer(static_cast<int64_t>(entries));
  return absl::OkStatus();
}

}  // namespace

std::span<const Command> ServerCommands() {
  static constexpr std::array kCommands = {
      Command{.name = "command",
              .arity = -1,
              .handler = Local{.answer = &Commands},
              .group = "server",
              .words = "[COUNT | DOCS [name ...] | INFO [name ...] | LIST]",
              .summary = "Describes the commands"},
      Command{.name = "dbsize",
              .arity = 1,
              .handler = StoreCommand{.carry_out = &DbSize},
              .operation = Operation::kListDatasets,
              .group = "server",
              .words = "",
              .summary = "Returns roughly how many entries the datasets have that the caller may read"},
      Command{.name = "info",
              .arity = -1,
              .handler = Local{.answer = &Info},
              .group = "server",
              .words = "[section ...]",
              .summary = "Describes the server"},
  };
  return kCommands;
}

}  // namespace kvstore::server::resp
