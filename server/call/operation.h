#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvstore::server {

/// A right of a caller on a dataset. Each right includes those before it.
enum class Right : uint8_t { kNone, kRead, kWrite, kAdmin };
/// The names of rights in the list of callers, by their numbers.
inline constexpr std::array<std::string_view, 4> kRightNames = {"none", "read", "write", "admin"};

/// The methods of the services: those of backend_api/operations.def, in its order, kEndpoint, and those that
/// the HTTP API alone has.
enum class Operation : uint8_t {
#define KV_UNARY(name, right, quick) k##name,
#define KV_PRODUCED(name, right) k##name,
#define KV_OTHER(name, right, handler) k##name,
#include "backend_api/operations.def"
  kEndpoint,  ///< Endpoints.Ask
  kListBackups,
  kVerifyBackup,
};

struct OperationTraits {
  std::string_view name;
  Right right;  ///< The right that the caller needs on the dataset, or on the report.
  /// Whether the call is so short that it runs on the thread that received it, which saves handing it to a
  /// worker. Applies only where the backend does not wait for other machines.
  bool quick;
};

/// How many operations there are.
inline constexpr size_t kOperationCount = static_cast<size_t>(Operation::kVerifyBackup) + 1;

/// A read that may return more entries than this, or passes more of them first, is not quick.
inline constexpr uint64_t kMaxQuickEntries = 1'000;

/// The values of `quick` in backend_api/operations.def; see OperationTraits::quick.
inline constexpr bool kQuick = true;
inline constexpr bool kQueued = false;

/// The traits of each operation, by its number.
inline constexpr std::array<OperationTraits, kOperationCount> kOperations = {{
#define KV_UNARY(name, right, quick) {#name, Right::right, quick},
#define KV_PRODUCED(name, right) {#name, Right::right, kQueued},
#define KV_OTHER(name, right, handler) {#name, Right::right, kQueued},
#include "backend_api/operations.def"
    {"Endpoint", Right::kAdmin, kQueued},
    {"ListBackups", Right::kAdmin, kQueued},
    {"VerifyBackup", Right::kAdmin, kQueued},
}};

/// Returns whether the operation is a single call on data of a dataset. Others are about datasets as a whole,
/// or about reports, which take many calls on data.
constexpr bool IsOnData(Operation operation) {
  return operation >= Operation::kGetRow && operation <= Operation::kCalls;
}

/// Returns whether the operation is one of the service Reports.
constexpr bool IsOnReports(Operation operation) {
  return operation >= Operation::kCreateReport && operation <= Operation::kMakeRollups;
}

/// Returns whether the operation is one of the service Shards.
constexpr bool IsOnShards(Operation operation) {
  return operation >= Operation::kGetShardMap && operation <= Operation::kOperateShards;
}

constexpr const OperationTraits& Traits(Operation operation) {
  return kOperations[static_cast<size_t>(operation)];
}

/// Returns whether an operation may be without a right: it tells about the server, or what each caller sees
/// depends on its rights.
constexpr bool IsForAnybody(Operation operation) {
  return operation == Operation::kGetServer || operation == Operation::kListDatasets ||
         operation == Operation::kListReports || operation == Operation::kCalls;
}

static_assert(
    [] {
      for (size_t i = 0; i < kOperationCount; ++i) {
        if ((kOperations[i].right == Right::kNone) != IsForAnybody(static_cast<Operation>(i))) return false;
      }
      return true;
    }(),
    "an operation of backend_api/operations.def needs a right");

}  // namespace kvstore::server
