#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/escape.h"
#include "idgen/object_id.h"

/// kv id encode, decode.
namespace kvstore::cli {

void AddIdCommands(CLI::App& app, Globals& globals) {
  CLI::App* group = app.add_subcommand("id", "Compose and decode IDs; needs no store");
  group->require_subcommand(1);

  struct Parts {
    uint64_t shard = 0, type = 0, local = 0;
  };
  auto parts = std::make_shared<Parts>();
  CLI::App* encode = group->add_subcommand("encode", "Compose an ID");
  encode->add_option("shard", parts->shard, "0 to 65535")->required();
  encode->add_option("type", parts->type, "1 to 1023")->required();
  encode->add_option("local", parts->local, "1 to 2^36-1")->required();
  encode->footer("Example: kv id encode 3429 1 7075733");
  encode->callback([parts, &globals] {
    const ObjectId id = OrWrongUsage(ObjectId::Make(parts->shard, parts->type, parts->local));
    if (globals.json) {
      PrintJson({{"ok", true}, {"object_id", id.ToString()}});
    } else {
      Print("{}\n", id.ToString());
    }
  });

  auto text = std::make_shared<std::string>();
  CLI::App* decode = group->add_subcommand("decode", "Print the shard, type and local number of an ID");
  decode->add_option("id", *text, "The ID, in decimal digits")->required();
  decode->footer("Example: kv id decode 241294492511762325");
  decode->callback([text, &globals] {
    const ObjectId id = OrWrongUsage(ObjectId::Parse(*text));
    if (globals.json) {
      PrintJson({{"ok", true}, {"shard", id.shard()}, {"type", id.type()}, {"local", id.local()}});
    } else {
      Print("shard {}  type {}  local {}\n", id.shard(), id.type(), id.local());
    }
  });
  group->footer("Example: kv id decode 241294492511762325");
}

}  // namespace kvstore::cli
