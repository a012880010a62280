#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "registry/config.h"

namespace kvstore {

/// What other users of this machine, who are neither the owner of a file nor in its group, can read and
/// should not, a line each: the configuration itself if there is a secret in it, the files of secrets and
/// private keys that it names, and the directory of the data. What is not there yet is left out; files that
/// only a folder above keeps from others are good. Errors as ReadConfig.
absl::StatusOr<std::vector<std::string>> ExposedSecrets(const std::filesystem::path& file,
                                                        const Config& config);

}  // namespace kvstore
