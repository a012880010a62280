#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "json_api/answers.h"

/// kv consumers: who follows a dataset under a name, and how far it has come.
namespace kvstore::cli {
namespace {

struct Arguments {
  std::string dataset;
  std::string name;
  std::string token;
};

void AddSet(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* set = group.add_subcommand("set", "Note how far a consumer has come, or make one");
  set->add_option("dataset", args->dataset, kDatasetHelp)->required();
  set->add_option("name", args->name, "1 to 64 letters, digits, '_', '-' and '.'")->required();
  set->add_option("token", args->token,
                  "begin: with the oldest change that is kept; now: after what is written by now; or the "
                  "token of a line of kv changes")
      ->type_name("begin|now|TOKEN")
      ->required();
  set->footer("Example: kv consumers set events search now");
  set->callback([args, &globals] {
    OrFail(globals.OpenStore(false)->SetConsumer(args->dataset, args->name, args->token));
    PrintDone(globals, fmt::format("noted {}", args->name));
  });
}

void AddList(CLI::App& group, Globals& globals) {
  auto dataset = std::make_shared<std::string>();
  CLI::App* list =
      group.add_subcommand("list", "List the consumers of a dataset, and how far they have come");
  list->add_option("dataset", *dataset, kDatasetHelp)->required();
  list->footer(
      R"(BEHIND is the age of the oldest change that the consumer has not dealt with. One that is lost has to begin again, with
kv changes DATASET --snapshot --consumer NAME.

Example: kv consumers list events)");
  list->callback([dataset, &globals] {
    const auto consumers = OrFail(globals.OpenStore(false)->ListConsumers(*dataset));
    if (globals.json) {
      Json all = Json::array();
      for (const ChangeConsumer& consumer : consumers) all.push_back(json_api::ConsumerToJson(consumer));
      return PrintJson({{"ok", true}, {"consumers", std::move(all)}});
    }
    Table table({"NAME", "BEHIND", "NOTED", "TOKEN"});
    for (const ChangeConsumer& consumer : consumers) {
      const bool lost = consumer.token.empty();
      table.Add({consumer.name, lost ? "lost" : fmt::format("{} ms", consumer.lag_ms),
                 UtcText(consumer.set_ms), lost ? "-" : consumer.token});
    }
    table.Print();
  });
}

void AddDrop(CLI::App& group, Globals& globals) {
  auto args = std::make_shared<Arguments>();
  CLI::App* drop = group.add_subcommand("drop", "Forget a consumer, so that nothing is kept for it");
  drop->add_option("dataset", args->dataset, kDatasetHelp)->required();
  drop->add_option("name", args->name, "Name of the consumer")->required();
  drop->footer("Example: kv consumers drop events search");
  drop->callback([args, &globals] {
    OrFail(globals.OpenStore(false)->DropConsumer(args->dataset, args->name));
    PrintDone(globals, fmt::format("dropped {}", args->name));
  });
}

}  // namespace

void AddConsumersCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand(
      "consumers", "Set, list and drop the named followers of a dataset, for which its changes are kept");
  group->require_subcommand(1);
  group->fallthrough();
  AddSet(*group, globals);
  AddList(*group, globals);
  AddDrop(*group, globals);
  group->footer("Example: kv consumers list events");
}

}  // namespace kvstore::cli
