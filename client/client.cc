#include "client/client.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "backend_api/outcome.h"
#include "client/caller.h"
#include "client/endpoint.h"
#include "client/outcome.h"
#include "client/verb_request.h"
#include "kvstore_api/connect.h"
#include "wire/convert.h"

namespace kvstore {

absl::StatusOr<std::unique_ptr<KVStore>> Connect(const std::string& address, const ConnectOptions& options) {
  return client::Client::Open(address, options);
}

namespace client {
namespace {

/// Has the server do long work, and tells its progress.
template <typename Response, typename Request>
absl::StatusOr<typename Response::Result> DoLongWork(
    Caller& caller,
    std::unique_ptr<grpc::ClientReaderInterface<Response>> (v1::KVStore::StubInterface::*method)(
        grpc::ClientContext*, const Request&),
    const Request& request, const Progress& progress) {
  grpc::ClientContext context;
  const CallLimits& limits = CallScope::Current();
  caller.Prepare(context, limits.deadline);
  const CancelWatch watch(context, limits.cancelled);
  const auto stream = (caller.Stub().*method)(&context, request);
  std::optional<typename Response::Result> result;
  bool stopped = false;
  for (Response response; stream->Read(&response);) {
    if (response.has_result()) {
      result = std::move(*response.mutable_result());
    } else if (progress && !stopped && !progress(response.progress().done(), response.progress().total())) {
      stopped = true;
      context.TryCancel();
    }
  }
  const grpc::Status status = stream->Finish();
  if (stopped) return absl::CancelledError("the work was stopped; what it has done stays done");
  if (!status.ok()) return caller.Classify(status, OutcomeOf(context), /*writes=*/false).status;
  if (!result) return caller.InvalidAnswerError("ended the work without its result");
  return *std::move(result);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Open(const std::string& address,
                                                     const ConnectOptions& options) {
  auto caller = Caller::Open(address, options);
  if (!caller.ok()) return caller.status();
  return std::make_unique<Client>(*std::move(caller));
}

const std::string& Client::address() const { return caller_->address(); }

// ---- datasets ----

absl::Status Client::CreateDataset(const DatasetSpec& spec) {
  v1::CreateDatasetRequest request;
  wire::ToWire(spec, *request.mutable_dataset());
  v1::CreateDatasetResponse response;
  return caller_->Call(request, response);
}

absl::Status Client::AlterDataset(std::string_view dataset, const DatasetChange& change) {
  v1::AlterDatasetRequest request;
  request.set_dataset(std::string(dataset));
  if (change.max_versions) request.set_max_versions(*change.max_versions);
  if (change.ttl_ms) request.set_ttl_ms(*change.ttl_ms);
  if (change.keep_changes_ms) request.set_keep_changes_ms(*change.keep_changes_ms);
  if (change.durability) request.set_durability(wire::ToWire(*change.durability));
  v1::AlterDatasetResponse response;
  return caller_->Call(request, response);
}

absl::Status Client::DropDataset(std::string_view dataset, const DropOptions& options) {
  v1::DropDatasetRequest request;
  request.set_dataset(std::string(dataset));
  request.set_incarnation(options.incarnation);
  v1::DropDatasetResponse response;
  return caller_->Call(request, response);
}

absl::StatusOr<DatasetSpec> Client::GetDataset(std::string_view dataset) {
  v1::GetDatasetRequest request;
  request.set_dataset(std::string(dataset));
  v1::GetDatasetResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (response.dataset().name() != dataset)
    return caller_->InvalidAnswerError("answered with another dataset");
  return wire::FromWire(response.dataset());
}

absl::StatusOr<std::vector<DatasetSpec>> Client::ListDatasets() {
  v1::ListDatasetsRequest request;
  v1::ListDatasetsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  std::vector<DatasetSpec> specs;
  for (const v1::Dataset& message : response.datasets()) {
    auto spec = wire::FromWire(message);
    if (!spec.ok()) return spec.status();
    specs.push_back(*std::move(spec));
  }
  return specs;
}

absl::StatusOr<DatasetStats> Client::GetStats(std::string_view dataset) {
  v1::GetStatsRequest request;
  request.set_dataset(std::string(dataset));
  v1::GetStatsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  return DatasetStats{response.approximate_bytes(), response.approximate_entries()};
}

absl::StatusOr<ReclaimResult> Client::Compact(std::string_view dataset, const Progress& progress) {
  v1::CompactRequest request;
  request.set_dataset(std::string(dataset));
  const auto told = DoLongWork(*caller_, &v1::KVStore::StubInterface::Compact, request, progress);
  if (!told.ok()) return told.status();
  return ReclaimResult{told->bytes_before(), told->bytes_after(), told->expired_cells(),
                       told->surplus_cells()};
}

absl::StatusOr<BackupMaker::Made> Client::CreateBackup(std::string_view dataset, const Progress& progress) {
  v1::CreateBackupRequest request;
  request.set_dataset(std::string(dataset));
  auto told = DoLongWork(*caller_, &v1::KVStore::StubInterface::CreateBackup, request, progress);
  if (!told.ok()) return told.status();
  return Made{.id = std::move(*told->mutable_id()),
              .url = std::move(*told->mutable_url()),
              .began_ms = told->began_ms(),
              .finished_ms = told->finished_ms(),
              .bytes = told->bytes(),
              .files = told->files(),
              .units = told->units(),
              .sent_bytes = told->sent_bytes(),
              .sent_objects = told->sent_objects()};
}

absl::StatusOr<std::string> Client::GetMetrics() {
  v1::GetMetricsRequest request;
  v1::GetMetricsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  return std::move(*response.mutable_text());
}

absl::StatusOr<Json> Client::Command(const Json& command) {
  v1::MigrateRequest request = MigrateRequestOf(command);
  v1::MigrateResponse response;
  // Commands that only read are often repeated by watchers. As reads their answers do not take place in the
  // server's memory of requests.
  const std::string name = command.value("command", "");
  const bool only_reads = name == "status" || name == "list";
  if (auto status = only_reads ? caller_->Read(request, response) : caller_->Call(request, response);
      !status.ok()) {
    return status;
  }
  return ParseJson(response.status());
}

std::unique_ptr<MigrationEndpoint> Client::OpenForMigration(const DatasetSpec& spec) const {
  return std::make_unique<RemoteEndpoint>(caller_, spec);
}

// ---- objects ----

absl::StatusOr<uint64_t> Client::CreateObject(std::string_view dataset, std::string_view data,
                                              const CreateOptions& options) {
  v1::CreateObjectRequest request;
  request.set_dataset(std::string(dataset));
  request.set_data(std::string(data));
  if (options.near) request.set_near(*options.near);
  if (options.shard) request.set_shard(*options.shard);
  request.mutable_attempt()->set_request_id(options.request_id);
  // Without an ID of the caller's a new one is made, so this is its first attempt.
  request.mutable_attempt()->set_first(options.request_id.empty() || options.first_attempt);
  v1::CreateObjectResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  return response.id();
}

absl::StatusOr<Object> Client::GetObject(std::string_view dataset, uint64_t id,
                                         const ObjectReadOptions& options) {
  v1::GetObjectRequest request;
  request.set_dataset(std::string(dataset));
  request.set_id(id);
  request.set_include_inactive(options.include_inactive);
  v1::GetObjectResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (response.object().id() != id) return caller_->InvalidAnswerError("answered with another object");
  return wire::FromWire(*response.mutable_object());
}

absl::StatusOr<Object> Client::Update(v1::UpdateObjectRequest& request) {
  v1::UpdateObjectResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (response.object().id() != request.id())
    return MarkInDoubt(caller_->InvalidAnswerError("answered with another object"));
  return wire::FromWire(*response.mutable_object());
}

absl::StatusOr<Object> Client::UpdateObject(std::string_view dataset, uint64_t id,
                                            const ObjectTransform& transform, const UpdateOptions& options) {
  for (int attempt = 0;; ++attempt) {
    auto object = GetObject(dataset, id, {.include_inactive = options.include_inactive});
    if (!object.ok()) return object;
    if (options.expected_timestamp && object->timestamp != *options.expected_timestamp) {
      return absl::FailedPreconditionError("expected_timestamp: the object's timestamp is " +
                                           std::to_string(object->timestamp));
    }
    auto data = transform(object->data);
    if (!data.ok()) return data.status();
    v1::UpdateObjectRequest request;
    request.set_dataset(std::string(dataset));
    request.set_id(id);
    request.set_data(*std::move(data));
    request.set_expected_timestamp(object->timestamp);
    request.set_include_inactive(options.include_inactive);
    auto updated = Update(request);
    // FAILED_PRECONDITION: another writer was faster, so the transform is applied to the new version. In
    // doubt, the new version may be this call's own, and the transform must not be applied twice.
    const bool lost = absl::IsFailedPrecondition(updated.status()) && !IsInDoubt(updated.status()) &&
                      !options.expected_timestamp;
    if (!lost || !caller_->Pause(attempt, CallScope::Current().deadline)) return updated;
  }
}

absl::StatusOr<Object> Client::PatchObject(std::string_view dataset, uint64_t id,
                                           std::string_view merge_patch, const UpdateOptions& options) {
  v1::UpdateObjectRequest request;
  request.set_dataset(std::string(dataset));
  request.set_id(id);
  request.set_merge_patch(std::string(merge_patch));
  if (options.expected_timestamp) request.set_expected_timestamp(*options.expected_timestamp);
  request.set_include_inactive(options.include_inactive);
  return Update(request);
}

absl::Status Client::DeleteObject(std::string_view dataset, uint64_t id, bool hard) {
  v1::DeleteObjectRequest request;
  request.set_dataset(std::string(dataset));
  request.set_id(id);
  request.set_hard(hard);
  v1::DeleteObjectResponse response;
  return caller_->Call(request, response);
}

absl::StatusOr<ObjectPage> Client::ScanObjects(std::string_view dataset, const IdRange& range,
                                               const ObjectScanOptions& options) {
  v1::ScanObjectsRequest request;
  request.set_dataset(std::string(dataset));
  wire::ToWire(range, *request.mutable_range());
  wire::ToWire(options, request);
  v1::ScanObjectsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (auto status = caller_->CheckPage(response.objects_size(), options.limit, options.marker,
                                       response.marker(), /*may_be_empty=*/true);
      !status.ok()) {
    return status;
  }
  ObjectPage page{.objects = {}, .marker = response.marker()};
  page.objects.reserve(static_cast<size_t>(response.objects_size()));
  uint64_t lowest = range.start;  // that the next object may have
  for (v1::Object& object : *response.mutable_objects()) {
    if (object.id() < lowest || object.id() >= range.end) {
      return caller_->InvalidAnswerError("answered a scan with objects that are not in its range or order");
    }
    lowest = object.id() + 1;
    page.objects.push_back(wire::FromWire(object));
  }
  return page;
}

// ---- mappings ----

absl::Status Client::AddMapping(std::string_view dataset, uint64_t from, uint64_t to,
                                std::optional<uint64_t> sequence) {
  v1::AddMappingRequest request;
  request.set_dataset(std::string(dataset));
  request.set_from(from);
  request.set_to(to);
  if (sequence) request.set_sequence(*sequence);
  v1::AddMappingResponse response;
  return caller_->Call(request, response);
}

absl::StatusOr<bool> Client::RemoveMapping(std::string_view dataset, uint64_t from, uint64_t to) {
  v1::RemoveMappingRequest request;
  request.set_dataset(std::string(dataset));
  request.set_from(from);
  request.set_to(to);
  v1::RemoveMappingResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  return response.removed();
}

absl::StatusOr<MappingPage> Client::ListMapping(std::string_view dataset, uint64_t from,
                                                const MappingListOptions& options) {
  v1::ListMappingRequest request;
  request.set_dataset(std::string(dataset));
  request.set_from(from);
  wire::ToWire(options, *request.mutable_options());
  v1::ListMappingResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (auto status =
          caller_->CheckPage(response.entries_size(), options.limit, options.marker, response.marker());
      !status.ok()) {
    return status;
  }
  MappingPage page{.marker = response.marker()};
  page.entries.reserve(static_cast<size_t>(response.entries_size()));
  for (const v1::MappingEntry& entry : response.entries()) page.entries.push_back(wire::FromWire(entry));
  return page;
}

absl::StatusOr<uint64_t> Client::CountMapping(std::string_view dataset, uint64_t from) {
  v1::CountMappingRequest request;
  request.set_dataset(std::string(dataset));
  request.set_from(from);
  v1::CountMappingResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  return response.count();
}

absl::StatusOr<JoinedPage> Client::ListObjects(std::string_view dataset, uint64_t from,
                                               const MappingListOptions& options) {
  v1::ListObjectsRequest request;
  request.set_dataset(std::string(dataset));
  request.set_from(from);
  wire::ToWire(options, *request.mutable_options());
  v1::ListObjectsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (auto status =
          caller_->CheckPage(response.results_size(), options.limit, options.marker, response.marker());
      !status.ok()) {
    return status;
  }
  JoinedPage page{.marker = response.marker()};
  for (v1::ListObjectsResponse::Result& result : *response.mutable_results()) {
    const MappingEntry entry = wire::FromWire(result.entry());
    if (result.has_error()) {
      page.objects.push_back({entry, wire::FromWire(result.error())});
    } else {
      if (result.object().id() != entry.to)
        return caller_->InvalidAnswerError("answered with another object");
      page.objects.push_back({entry, wire::FromWire(*result.mutable_object())});
    }
  }
  return page;
}

absl::StatusOr<ScannedMappingPage> Client::ScanMappings(std::string_view dataset, const IdRange& range,
                                                        const MappingScanOptions& options) {
  v1::ScanMappingsRequest request;
  request.set_dataset(std::string(dataset));
  wire::ToWire(range, *request.mutable_range());
  wire::ToWire(options, request);
  v1::ScanMappingsResponse response;
  if (auto status = caller_->Call(request, response); !status.ok()) return status;
  if (auto status = caller_->CheckPage(response.entries_size(), options.limit, options.marker,
                                       response.marker(), /*may_be_empty=*/true);
      !status.ok()) {
    return status;
  }
  ScannedMappingPage page{.entries = {}, .marker = response.marker()};
  page.entries.reserve(static_cast<size_t>(response.entries_size()));
  for (const auto& message : response.entries()) {
    const ScannedMapping entry{message.from(), message.to(), message.sequence()};
    const bool follows = page.entries.empty() || std::pair(page.entries.back().from, page.entries.back().to) <
                                                     std::pair(entry.from, entry.to);
    if (!follows || entry.from < range.start || entry.from >= range.end) {
      return caller_->InvalidAnswerError("answered a scan with entries that are not in its range or order");
    }
    page.entries.push_back(entry);
  }
  return page;
}

}  // namespace client
}  // namespace kvstore
