#include "cli/command.h"

namespace kvstore::cli {

void AddStatCommand(CLI::App&, Globals&) {}

}  // namespace kvstore::cli
