#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.h"

/// The commands of `kv`. Each function adds some to the program.
namespace kvstore::cli {

/// The program that `kv bench` starts, from the folder of kv.
inline constexpr char kBenchProgram[] = "kv-bench";

/// Adds all commands. `globals` must outlive the app.
void AddCommands(CLI::App& app, Globals& globals);

void AddRowCommands(CLI::App& app, Globals& globals);
void AddDatasetCommands(CLI::App& app, Globals& globals);
void AddObjectCommands(CLI::App& app, Globals& globals);
void AddMappingCommands(CLI::App& app, Globals& globals);
void AddIdCommands(CLI::App& app, Globals& globals);
void AddShardsCommands(CLI::App& app, Globals& globals);
void AddImportCommand(CLI::App& app, Globals& globals);
void AddExportCommand(CLI::App& app, Globals& globals);
void AddReportCommands(CLI::App& app, Globals& globals);
void AddChangesCommand(CLI::App& app, Globals& globals);
void AddConsumersCommands(CLI::App& app, Globals& globals);
void AddExecCommand(CLI::App& app, Globals& globals);
void AddServeCommand(CLI::App& app, Globals& globals);
void AddOperateCommands(CLI::App& app, Globals& globals);
void AddMigrateCommands(CLI::App& app, Globals& globals);
void AddStatCommand(CLI::App& app, Globals& globals);
void AddConfigCommands(CLI::App& app, Globals& globals);
void AddBenchCommand(CLI::App& app, Globals& globals);
void AddCacheCommands(CLI::App& app, Globals& globals);
void AddBackupCommands(CLI::App& app, Globals& globals);
void AddRepairCommand(CLI::App& app, Globals& globals);
void AddCompletionCommand(CLI::App& app);

}  // namespace kvstore::cli
