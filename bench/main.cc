#include "bench/commands/bench_commands.h"
#include "cli/program.h"

/// kv-bench, which `kv bench` starts.
int main(int argc, char** argv) {
  return kvstore::cli::Main(argc, argv, "kv bench", &kvstore::bench::AddBenchCommands);
}
