#include "cli/commands.h"
#include "cli/program.h"
#include "cli/standard_output.h"

namespace {

/// The dynamic linker calls this before the constructors of shared libraries, of which gRPC's opens a
/// descriptor. Were a standard one closed, gRPC's would get its number before main is reached: `kv exec <&-`
/// would read from it. A constructor of this program would be called after those of the libraries.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*occupy_standard_files)() = &kvstore::cli::OccupyStandardFiles;

}  // namespace

int main(int argc, char** argv) { return kvstore::cli::Main(argc, argv, "kv", &kvstore::cli::AddCommands); }
