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

/// The same error, if the dataset is where the catalog says, once that was looked into again: it is not here,
/// and may have been moved away long ago.
absl::Status GoneError(absl::Status status);

/// Whether it is one of the three.
bool IsMoving(const absl::Status& status);
/// Whether it is a GoneError.
bool IsGone(const absl::Status& status);

}  // namespace kvstore
