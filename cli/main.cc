#include "cli/commands.h"
#include "cli/program.h"

int main(int argc, char** argv) { return kvstore::cli::Main(argc, argv, "kv", &kvstore::cli::AddCommands); }
