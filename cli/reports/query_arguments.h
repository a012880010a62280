#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/reports/report_command.h"
#include "reports/query.h"

namespace kvstore::cli {

/// The span of time and the series that a query is about, as they are given.
struct QuerySource {
  ReportOptions options;
  std::string from = "-30d";
  std::string to = "now";
  std::string zone = "UTC";
  std::vector<std::string> where;
  std::vector<std::string> filters;

  /// Adds the options, without the report's name.
  void AddTo(CLI::App& command);
  /// Reads them into a query. Ends the command as a usage error if one is wrong.
  ///
  /// now  the time that "now" is, in ms since 1970.
  void Read(int64_t now, reports::Query& query) const;
};

/// All options of `kv report query`, as they are given.
struct QueryArguments {
  QuerySource source;
  std::vector<std::string> metrics;
  std::vector<std::string> expressions;
  std::string step;
  std::vector<std::string> by;
  std::string function = "sum";
  std::string top;
  std::string fill = "none";
  std::string compare;
  bool partial = false;
  bool explain = false;

  void AddTo(CLI::App& command);
  /// Returns the query. Ends the command as a usage error if an option is wrong.
  reports::Query ToQuery(int64_t now) const;
};

}  // namespace kvstore::cli
