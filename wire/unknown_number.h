#pragma once

#include <fmt/format.h>

#include <string_view>

#include "absl/status/status.h"

namespace kvstore::wire {

/// The error of an enumeration's value that is none of those which this program knows.
///
/// field  what the message calls the field.
template <typename Enum>
absl::Status UnknownNumberError(std::string_view field, Enum value) {
  return absl::InvalidArgumentError(
      fmt::format("{}: the value {} is not one that this program knows; a newer version may have sent it",
                  field, static_cast<int>(value)));
}

}  // namespace kvstore::wire
