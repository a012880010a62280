#pragma once

#include <string>

#include "server/resp/commands/command.h"

namespace kvstore::server::resp {

/// Returns the dataset in which a SCAN continues, or begins: SCAN goes through one dataset after the other,
/// and has to be admitted for the one that it reads. Empty if none is left that the caller may read, or if
/// the command is no valid one, which carrying it out says.
std::string ScannedDataset(Router& router, const Cursors& cursors, const Principal* principal,
                           std::string_view caller, Arguments arguments);

}  // namespace kvstore::server::resp
