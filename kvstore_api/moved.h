#pragma once

#include <string_view>

#include "absl/status/status.h"

/// What a backend says to a call that it refuses because its dataset moves to another backend. The router
/// does not pass these on: it waits, reads the catalog again, and repeats the call where the data is by then,
/// within the call's deadline. A backend that answers so has changed nothing.
namespace kvstore {

/// The dataset is served elsewhere: see the catalog.
absl::Status MovedError(std::string_view message);
/// Writes are held back for a moment.
absl::Status FrozenError(std::string_view message);

/// Whether it is one of the two.
bool IsMoving(const absl::Status& status);

}  // namespace kvstore
