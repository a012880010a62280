#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// Advice says what a person may do about an error. It goes from the code that knows the cause to the program
/// that shows the error, as a payload of the status, which does not travel over the network.
namespace kvstore {

/// Returns the same error with this advice, in place of any that it had. The status must not be OK.
///
/// advice  "restore the store from a backup"; empty: the message says it all.
absl::Status Advise(absl::Status status, std::string_view advice);

/// Returns the advice; nullopt if nobody gave one.
std::optional<std::string> AdviceOf(const absl::Status& status);

}  // namespace kvstore
