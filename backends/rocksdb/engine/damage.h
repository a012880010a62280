#pragma once

#include <string>

#include "absl/status/status.h"

/// The errors of a store that has lost data. Each carries advice for its cause (base/advice.h).
namespace kvstore::rocks {

/// Returns DATA_LOSS for a damaged log: kv repair can keep what is in front of the damage.
absl::Status DamagedLogError(const std::string& message);
/// Returns DATA_LOSS for any other damaged file, for which there is no repair.
absl::Status DamagedFileError(const std::string& message);

/// Returns DATA_LOSS for data that the catalog has and this directory has not.
///
/// shared  the catalog is not in this directory, so that another directory may have the data.
absl::Status MissingDataError(const std::string& message, bool shared);

}  // namespace kvstore::rocks
