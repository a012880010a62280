#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/command.h"
#include "reports/reports.h"

/// Code that the commands of `kv report` share.
namespace kvstore::cli {

/// The options of every command.
struct ReportOptions {
  std::string dataset;
  std::string name;  ///< The report's name.

  /// Adds --dataset.
  void AddDataset(CLI::App& command);
  /// Adds --dataset and the report's name, which is the first argument.
  void AddTo(CLI::App& command);
};

/// The reports of a dataset, in a store of this process or behind a server.
class ReportStore {
 public:
  /// Throws Failure.
  ReportStore(const Globals& globals, const std::string& dataset, bool create_if_missing = false);

  reports::Reports& operator*() const { return *reports_; }
  reports::Reports* operator->() const { return reports_.get(); }

 private:
  std::unique_ptr<KVStore> store_;  // null: behind a server
  std::unique_ptr<reports::Reports> reports_;
};

/// Prints that a change was made; {"ok":true} with --json.
void PrintReportDone(const Globals& globals, const std::string& done);

// Each adds some commands to `kv report`.
void AddReportSettingsCommands(CLI::App& group, Globals& globals);
void AddReportShowCommands(CLI::App& group, Globals& globals);
void AddReportLoadCommand(CLI::App& group, Globals& globals);
void AddReportQueryCommands(CLI::App& group, Globals& globals);
void AddReportUpkeepCommands(CLI::App& group, Globals& globals);

}  // namespace kvstore::cli
