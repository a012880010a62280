#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace kvstore::server {

/// What a caller may do with a dataset; each includes those before it.
enum class Right : uint8_t { kNone, kRead, kWrite, kAdmin };

/// The calls of the services, in the order of kvstore.proto and endpoint.proto.
enum class Operation : uint8_t {
  kGetServer,
  kGetMetrics,
  kCreateDataset,
  kAlterDataset,
  kDropDataset,
  kGetDataset,
  kListDatasets,
  kGetStats,
  kCompact,
  kMigrate,
  kGetRow,
  kPutRow,
  kDeleteRow,
  kGetRows,
  kPutRows,
  kDeleteRows,
  kImportRows,
  kScanRows,
  kListPartitions,
  kCreateObject,
  kGetObject,
  kGetObjects,
  kUpdateObject,
  kDeleteObject,
  kAddMapping,
  kRemoveMapping,
  kListMapping,
  kCountMapping,
  kListObjects,
  kCalls,
  kEndpoint,  ///< Endpoints.Ask
};

struct OperationTraits {
  std::string_view name;
  Right right = Right::kNone;  ///< That the caller needs on the dataset.
  /// Done at once where the backend does not wait for other machines: made on the thread that the call came
  /// on, which saves a hand-over.
  bool quick = false;
};

inline constexpr std::array<OperationTraits, 31> kOperations = {{
    {"GetServer", Right::kNone, true},       {"GetMetrics", Right::kRead, false},
    {"CreateDataset", Right::kAdmin, false}, {"AlterDataset", Right::kAdmin, false},
    {"DropDataset", Right::kAdmin, false},   {"GetDataset", Right::kRead, true},
    {"ListDatasets", Right::kNone, true},  // shows what the caller may read
    {"GetStats", Right::kRead, false},       {"Compact", Right::kAdmin, false},
    {"Migrate", Right::kAdmin, false},       {"GetRow", Right::kRead, true},
    {"PutRow", Right::kWrite, false},        {"DeleteRow", Right::kWrite, false},
    {"GetRows", Right::kRead, false},        {"PutRows", Right::kWrite, false},
    {"DeleteRows", Right::kWrite, false},    {"ImportRows", Right::kWrite, false},
    {"ScanRows", Right::kRead, false},       {"ListPartitions", Right::kRead, false},
    {"CreateObject", Right::kWrite, false},  {"GetObject", Right::kRead, true},
    {"GetObjects", Right::kRead, false},     {"UpdateObject", Right::kWrite, false},
    {"DeleteObject", Right::kWrite, false},  {"AddMapping", Right::kWrite, false},
    {"RemoveMapping", Right::kWrite, false}, {"ListMapping", Right::kRead, true},
    {"CountMapping", Right::kRead, false},   {"ListObjects", Right::kRead, false},
    {"Calls", Right::kNone, false},  // each of them needs its own
    {"Endpoint", Right::kAdmin, false},
}};

/// Whether it reads or writes what is in a dataset; others are about datasets as a whole.
constexpr bool IsOnData(Operation operation) {
  return operation >= Operation::kGetRow && operation != Operation::kEndpoint;
}

constexpr const OperationTraits& Traits(Operation operation) {
  return kOperations[static_cast<size_t>(operation)];
}

}  // namespace kvstore::server
