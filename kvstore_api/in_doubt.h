#pragma once

#include "absl/status/status.h"

namespace kvstore {

/// Whether an error is that of a write that may or may not have happened, or may happen later: its server or
/// host was lost before it answered. A write that fails without this has changed nothing. False for OK.
/// Whoever must know reads what is there, and decides.
bool IsInDoubt(const absl::Status& status);

/// The payload that such a status has, without content, for whoever carries errors on by other means.
inline constexpr char kInDoubtPayload[] = "kvstore/in-doubt";

}  // namespace kvstore
