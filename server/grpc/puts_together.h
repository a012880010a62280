#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kvstore/v1/kvstore.pb.h"
#include "server/grpc/unary_call.h"

namespace kvstore::server {

/// A put of one row.
using PutCall = UnaryCall<v1::PutRowRequest, v1::PutRowResponse>;

/// One of the puts that are carried out together.
struct PutOfMany {
  enum class End : uint8_t {
    kDone,       ///< The call has ended with `status`.
    kSuspended,  ///< It is to be suspended, because its dataset migrates (Call::SuspendUntilRetry).
    kWouldWait,  ///< Nothing was done: it has to be carried out by a thread that may wait.
  };

  PutCall* call = nullptr;  ///< Admitted, and without a condition.
  absl::Status status{};
  End end = End::kDone;
};

enum class Patience : uint8_t {
  kPrompt,  ///< The thread must not wait (PromptScope): puts may end with kWouldWait.
  kWaits,
};

/// Carries out puts of one dataset, in their order: the store writes many of them at once. Each call begins,
/// ends, is counted and is remembered as if it were alone, and an attempt that repeats an earlier one of them
/// has its answer.
void CarryOutTogether(Core& core, std::span<PutOfMany> puts, Patience patience);

}  // namespace kvstore::server
