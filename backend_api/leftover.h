#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

/// The error of a create that meets the data of another dataset of the same name. A backend cannot know which
/// of the two is to stay; the router can (router/leftovers.h).
namespace kvstore {

/// Returns a FAILED_PRECONDITION.
///
/// incarnation  the other dataset's DatasetSpec::incarnation.
absl::Status LeftoverError(std::string_view message, uint64_t incarnation);
/// Returns the incarnation of the dataset whose data is in the way; nullopt for other errors.
std::optional<uint64_t> LeftoverOf(const absl::Status& status);

}  // namespace kvstore
