#pragma once

#include <cstdint>
#include <string>

#include "bench/harness/load.h"
#include "cli/command.h"

namespace kvstore::bench {

/// The arguments of kv bench tenants for a flood.
struct FloodArguments {
  int threads = 0;  ///< 0: there is none.
  uint64_t limit = 0;
  bool elsewhere = false;
};

/// Adds the options to kv bench tenants.
void AddFloodOptions(CLI::App& command, FloodArguments& arguments);

/// Runs the benchmark of a flood if it is asked for; returns whether it is.
///
/// load  Its threads are those of each caller, as long as nobody floods.
/// html  File for the report as a page; empty: none is made.
bool RunFlood(const cli::Globals& globals, const FloodArguments& arguments, const LoadOptions& load,
              const std::string& html);

/// Adds the command by which the benchmark starts its second process.
void AddFloodingProcess(CLI::App& group);

}  // namespace kvstore::bench
