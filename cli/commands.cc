#include "cli/commands.h"

namespace kvstore::cli {
namespace {

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
KV_SERVER. An option takes precedence over the environment; within the environment a server takes precedence over both
others. --server together with --data or --config is wrong usage, except for kv bench; --data together with --config
replaces the directory in the configuration.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage. When the reader of standard output has
gone (kv scan events --all | head), kv ends silently by SIGPIPE, which shells report as 141.)";

}  // namespace

void AddCommands(CLI::App& app, Globals& globals) {
  app.description(kDescription);
  AddGlobals(app, globals);
  AddRowCommands(app, globals);
  AddDatasetCommands(app, globals);
  AddObjectCommands(app, globals);
  AddMappingCommands(app, globals);
  AddIdCommands(app, globals);
  AddShardsCommands(app, globals);
  AddImportCommand(app, globals);
  AddExportCommand(app, globals);
  AddReportCommands(app, globals);
  AddChangesCommand(app, globals);
  AddConsumersCommands(app, globals);
  AddExecCommand(app, globals);
  AddServeCommand(app, globals);
  AddOperateCommands(app, globals);
  AddMigrateCommands(app, globals);
  AddStatCommand(app, globals);
  AddConfigCommands(app, globals);
  AddCacheCommands(app, globals);
  AddBackupCommands(app, globals);
  AddRepairCommand(app, globals);
  AddBenchCommand(app, globals);
  AddCompletionCommand(app);
  // Set after the commands were added, because they would inherit the footer.
  app.footer(kFooter);
  FinishCommands(app);
}

}  // namespace kvstore::cli
