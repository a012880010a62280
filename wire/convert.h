#pragma once

#include <grpcpp/support/status.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kvstore/v1/kvstore.pb.h"
#include "kvstore_api/changes.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/kvstore.h"
#include "kvstore_api/options.h"
#include "kvstore_api/types.h"

/// Conversion between the types of the API and the messages of kvstore.proto, for client and server. Fields
/// that a message does not have get the API's default. The store validates; nothing is checked here that it
/// checks. Views point into the message.
namespace kvstore::wire {

template <typename T>
using List = google::protobuf::RepeatedPtrField<T>;

// ---- datasets ----

void ToWire(const DatasetSpec& spec, v1::Dataset& message);
/// INVALID_ARGUMENT for a number that names no shape, durability or compression.
absl::StatusOr<DatasetSpec> FromWire(const v1::Dataset& message);
v1::Durability ToWire(Durability durability);
/// INVALID_ARGUMENT for a number that names no durability.
absl::StatusOr<Durability> FromWire(v1::Durability durability);

void ToWire(Change change, v1::Change& message);
/// nullopt for a message that says of nothing what it is now.
std::optional<Change> FromWire(v1::Change& message);

// ---- rows ----

void ToWire(const ReadOptions& options, v1::ReadOptions& message);
ReadOptions FromWire(const v1::ReadOptions& message);
void ToWire(std::vector<Item> items, List<v1::Item>& list);
std::vector<Item> FromWire(List<v1::Item>& list);
void ToWire(std::span<const CellWrite> cells, List<v1::CellWrite>& list);
std::vector<CellWrite> FromWire(const List<v1::CellWrite>& list);
void ToWire(const Condition& condition, v1::Condition& message);
Condition FromWire(const v1::Condition& message);
void ToWire(const DeleteOptions& options, v1::DeleteOptions& message);
DeleteOptions FromWire(const v1::DeleteOptions& message);
void ToWire(const RowRange& range, v1::RowRange& message);
RowRange FromWire(const v1::RowRange& message);
void ToWire(const ScanOptions& options, v1::ScanRowsRequest& message);
ScanOptions FromWire(const v1::ScanRowsRequest& message);

// ---- objects and mappings ----

void ToWire(const IdRange& range, v1::IdRange& message);
IdRange FromWire(const v1::IdRange& message);
void ToWire(const ObjectScanOptions& options, v1::ScanObjectsRequest& message);
ObjectScanOptions FromWire(const v1::ScanObjectsRequest& message);
void ToWire(const MappingScanOptions& options, v1::ScanMappingsRequest& message);
MappingScanOptions FromWire(const v1::ScanMappingsRequest& message);

void ToWire(Object object, v1::Object& message);
Object FromWire(v1::Object& message);
void ToWire(const MappingListOptions& options, v1::ListingOptions& message);
MappingListOptions FromWire(const v1::ListingOptions& message);
void ToWire(const MappingEntry& entry, v1::MappingEntry& message);
MappingEntry FromWire(const v1::MappingEntry& message);

// ---- errors ----

/// Truncates the message to 2,000 bytes, so that it fits into a header.
grpc::Status ToWire(const absl::Status& status);
absl::Status FromWire(const grpc::Status& status);
/// The error of one entry of a batch. It keeps whether the entry is in doubt, and whether the dataset
/// migrates (backend_api/outcome.h).
void ToWire(const absl::Status& status, v1::Error& message);
absl::Status FromWire(const v1::Error& message);

/// Returns a text whose bytes that are not ASCII are replaced by '?'. A string field of protobuf must be
/// UTF-8, and a message of a store may quote any bytes.
std::string AsciiOf(std::string_view text);

/// Trailing metadata, and its values, that say what became of a call that failed; kvstore.proto explains
/// them.
inline constexpr char kOutcome[] = "kvstore-outcome";
inline constexpr char kRefused[] = "refused";
inline constexpr char kInDoubt[] = "in-doubt";
inline constexpr char kFailed[] = "failed";
inline constexpr char kMoved[] = "moved";

/// Metadata of requests between servers that share a catalog; kvstore.proto explains it.
inline constexpr char kBackend[] = "kvstore-backend";
/// Metadata of requests: whether the server holds calls on a dataset that migrates, or reports it at once.
/// kvstore.proto explains it.
inline constexpr char kMoving[] = "kvstore-moving";
inline constexpr char kTell[] = "tell";

/// The largest messages that a server and a client accept, in bytes.
inline constexpr int kMaxRequestBytes = 20 << 20;
inline constexpr int kMaxAnswerBytes = 32 << 20;

}  // namespace kvstore::wire
