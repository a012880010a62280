#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "assembly/config.h"

namespace kvstore {

/// Returns a warning for each path that other users of this machine, who are neither its owner nor in its
/// group, can read and should not: the configuration file if there is a secret in it, the files with secrets
/// and private keys that it names, and the directory of the data. Then one for each that they can write to or
/// replace and that decides who may do what: the configuration file, the list of tokens, the authority of the
/// clients' certificates. Links are followed. Paths that do not exist are left out, and so are those below a
/// folder that others cannot enter.
///
/// file    the configuration file, which is read again: `config` does not say where a secret came from.
/// config  what ReadConfig has made of it.
///
/// Errors are those of ReadConfig.
absl::StatusOr<std::vector<std::string>> ExposedSecrets(const std::filesystem::path& file,
                                                        const Config& config);

}  // namespace kvstore
