#include <algorithm>
#include <utility>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "backend_api/outcome.h"
#include "backend_api/scan_budget.h"
#include "backend_api/validate.h"
#include "kvstore_api/limits.h"
#include "server/grpc/handlers.h"
#include "wire/convert.h"

namespace kvstore::server {
namespace {

/// How many objects of a batch are read together at first; later as many as fill kBatchMessageBytes.
constexpr size_t kFirstObjects = 256;
constexpr size_t kMaxObjects = 4'000;

}  // namespace

absl::Status Handle(KVStore& store, const v1::CreateObjectRequest& request,
                    v1::CreateObjectResponse& response) {
  CreateOptions options{.request_id = request.attempt().request_id(),
                        .first_attempt = request.attempt().first()};
  if (request.has_near()) options.near = request.near();
  if (request.has_shard()) options.shard = request.shard();
  const auto id = store.CreateObject(request.dataset(), request.data(), options);
  if (!id.ok()) return id.status();
  response.set_id(*id);
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::GetObjectRequest& request, v1::GetObjectResponse& response) {
  auto object =
      store.GetObject(request.dataset(), request.id(), {.include_inactive = request.include_inactive()});
  if (!object.ok()) return object.status();
  wire::ToWire(*std::move(object), *response.mutable_object());
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::UpdateObjectRequest& request,
                    v1::UpdateObjectResponse& response) {
  UpdateOptions options{.include_inactive = request.include_inactive()};
  if (request.has_expected_timestamp()) options.expected_timestamp = request.expected_timestamp();
  absl::StatusOr<Object> object = absl::InvalidArgumentError("change: give merge_patch or data");
  if (request.has_merge_patch()) {
    object = store.PatchObject(request.dataset(), request.id(), request.merge_patch(), options);
  } else if (request.has_data()) {
    object = store.UpdateObject(
        request.dataset(), request.id(),
        [&request](std::string_view) -> absl::StatusOr<std::string> { return request.data(); }, options);
  }
  if (!object.ok()) return object.status();
  wire::ToWire(*std::move(object), *response.mutable_object());
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::DeleteObjectRequest& request, v1::DeleteObjectResponse&) {
  return store.DeleteObject(request.dataset(), request.id(), request.hard());
}

absl::Status Handle(KVStore& store, const v1::ScanObjectsRequest& request,
                    v1::ScanObjectsResponse& response) {
  ObjectScanOptions options = wire::FromWire(request);
  if (options.max_bytes <= kMaxPageBytes) options.max_bytes = std::min(options.max_bytes, kMaxWireBytes);
  auto page = store.ScanObjects(request.dataset(), wire::FromWire(request.range()), options);
  if (!page.ok()) return page.status();
  for (Object& object : page->objects) wire::ToWire(std::move(object), *response.add_objects());
  response.set_marker(std::move(page->marker));
  return absl::OkStatus();
}

Producer<v1::GetObjectsResponse> Produce(KVStore& store, const v1::GetObjectsRequest& request) {
  return [&store, &request, done = size_t{0}, together = kFirstObjects](
             v1::GetObjectsResponse& response, absl::Status* migrating) mutable -> absl::StatusOr<bool> {
    const auto size = static_cast<size_t>(request.ids_size());
    if (done == 0) {
      if (auto status = ValidateBatch(size); !status.ok()) return status;
    }
    if (done == size) return false;
    const std::vector<uint64_t> ids(
        request.ids().begin() + static_cast<int>(done),
        request.ids().begin() + static_cast<int>(std::min(size, done + together)));
    const SmallBatches pieces(kBatchMessageBytes);
    auto objects = store.GetObjects(request.dataset(), ids, {.include_inactive = request.include_inactive()});
    if (!objects.ok()) return objects.status();
    size_t bytes = 0;
    for (absl::StatusOr<Object>& object : *objects) {
      // As in GetRows (handlers_rows.cc).
      if (IsPaused(object.status()) && response.results_size() > 0) break;
      if (migrating != nullptr && IsMigrating(object.status())) {
        // As in GetRows.
        together = 1;
        if (response.results_size() == 0) *migrating = object.status();
        return response.results_size() > 0;
      }
      auto& message = *response.add_results();
      ++done;
      if (!object.ok()) {
        wire::ToWire(object.status(), *message.mutable_error());
        continue;
      }
      bytes += object->data.size() + 32;
      wire::ToWire(*std::move(object), *message.mutable_object());
      // The other objects that were read are read again for the next message.
      if (bytes > kMaxWireBytes) break;
    }
    const size_t average = bytes / static_cast<size_t>(response.results_size()) + 1;
    together = std::clamp<size_t>(kBatchMessageBytes / average, 1, kMaxObjects);
    return true;
  };
}

// ---- mappings ----

absl::Status Handle(KVStore& store, const v1::AddMappingRequest& request, v1::AddMappingResponse&) {
  std::optional<uint64_t> sequence;
  if (request.has_sequence()) sequence = request.sequence();
  return store.AddMapping(request.dataset(), request.from(), request.to(), sequence);
}

absl::Status Handle(KVStore& store, const v1::RemoveMappingRequest& request,
                    v1::RemoveMappingResponse& response) {
  const auto removed = store.RemoveMapping(request.dataset(), request.from(), request.to());
  if (!removed.ok()) return removed.status();
  response.set_removed(*removed);
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::ListMappingRequest& request,
                    v1::ListMappingResponse& response) {
  auto page = store.ListMapping(request.dataset(), request.from(), wire::FromWire(request.options()));
  if (!page.ok()) return page.status();
  for (const MappingEntry& entry : page->entries) wire::ToWire(entry, *response.add_entries());
  response.set_marker(std::move(page->marker));
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::CountMappingRequest& request,
                    v1::CountMappingResponse& response) {
  const auto count = store.CountMapping(request.dataset(), request.from());
  if (!count.ok()) return count.status();
  response.set_count(*count);
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::ListObjectsRequest& request, v1::ListObjectsResponse& response,
                    Unfinished* unfinished) {
  MappingListOptions options = wire::FromWire(request.options());
  if (options.max_bytes <= kMaxPageBytes) options.max_bytes = std::min(options.max_bytes, kMaxWireBytes);
  auto page = store.ListObjects(request.dataset(), request.from(), options);
  if (!page.ok()) return page.status();
  response.Clear();
  if (unfinished != nullptr) unfinished->migrating = absl::OkStatus();
  for (JoinedObject& joined : page->objects) {
    if (unfinished != nullptr && IsMigrating(joined.object.status()))
      unfinished->migrating = joined.object.status();
    auto& message = *response.add_results();
    wire::ToWire(joined.entry, *message.mutable_entry());
    if (joined.object.ok()) {
      wire::ToWire(*std::move(joined.object), *message.mutable_object());
    } else {
      wire::ToWire(joined.object.status(), *message.mutable_error());
    }
  }
  response.set_marker(std::move(page->marker));
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::ScanMappingsRequest& request,
                    v1::ScanMappingsResponse& response) {
  auto page = store.ScanMappings(request.dataset(), wire::FromWire(request.range()), wire::FromWire(request));
  if (!page.ok()) return page.status();
  for (const ScannedMapping& entry : page->entries) {
    auto& message = *response.add_entries();
    message.set_from(entry.from);
    message.set_to(entry.to);
    message.set_sequence(entry.sequence);
  }
  response.set_marker(std::move(page->marker));
  return absl::OkStatus();
}

}  // namespace kvstore::server
