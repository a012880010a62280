#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "idgen/object_id.h"
#include "kvstore_api/batch.h"
#include "kvstore_api/json.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/marker.h"
#include "kvstore_api/router.h"
#include "kvstore_api/validate.h"

namespace kvstore {
namespace {

absl::Status CheckId(uint64_t id, uint32_t type, std::string_view dataset) {
  const auto parts = ObjectId::FromValue(id);
  if (!parts.ok()) {
    return absl::InvalidArgumentError(fmt::format("object_id: {}", std::string(parts.status().message())));
  }
  if (parts->type() != type) {
    return absl::InvalidArgumentError(
        fmt::format("object_id: {} has type {}, dataset '{}' has type {}", id, parts->type(), dataset, type));
  }
  return absl::OkStatus();
}

/// A transform whose result is checked to be a document.
ObjectTransform Checked(const ObjectTransform& transform) {
  return [&transform](std::string_view current) -> absl::StatusOr<std::string> {
    auto data = transform(current);
    if (!data.ok()) return data;
    if (auto document = ParseDocument(*data); !document.ok()) return document.status();
    return data;
  };
}

}  // namespace

absl::StatusOr<Router::Found> Router::FindForObject(std::string_view name, uint64_t id) const {
  auto found = Find(name, Shape::kObjects);
  if (!found.ok()) return found;
  if (auto status = CheckId(id, (*found)->spec.type, name); !status.ok()) return status;
  return found;
}

absl::StatusOr<uint64_t> Router::CreateObject(std::string_view dataset, std::string_view data,
                                              const CreateOptions& options) {
  const auto found = Find(dataset, Shape::kObjects);
  if (!found.ok()) return found.status();
  if (options.near && options.shard)
    return absl::InvalidArgumentError("near, shard: give one of them, not both");
  if (options.near) {
    // Of any type: objects of different datasets can live on one shard.
    if (auto id = ObjectId::FromValue(*options.near); !id.ok()) {
      return absl::InvalidArgumentError(fmt::format("near: {}", std::string(id.status().message())));
    }
  }
  if (options.shard && *options.shard > ObjectId::kMaxShard) {
    return absl::InvalidArgumentError(
        fmt::format("shard: {} is out of range 0..{}", *options.shard, ObjectId::kMaxShard));
  }
  if (auto document = ParseDocument(data); !document.ok()) return document.status();
  return (*found)->objects->Create(data, options);
}

absl::StatusOr<Object> Router::GetObject(std::string_view dataset, uint64_t id,
                                         const ObjectReadOptions& options) {
  const auto found = FindForObject(dataset, id);
  if (!found.ok()) return found.status();
  return (*found)->objects->Get(id, options);
}

absl::StatusOr<std::vector<absl::StatusOr<Object>>> Router::GetObjects(std::string_view dataset,
                                                                       std::span<const uint64_t> ids,
                                                                       const ObjectReadOptions& options) {
  const auto found = Find(dataset, Shape::kObjects);
  if (!found.ok()) return found.status();
  if (auto status = ValidateBatch(ids.size()); !status.ok()) return status;
  return SendValid<absl::StatusOr<Object>>(
      ids, [&](uint64_t id) { return CheckId(id, (*found)->spec.type, dataset); },
      [&](std::span<const uint64_t> valid) { return (*found)->objects->GetMany(valid, options); });
}

absl::StatusOr<Object> Router::UpdateObject(std::string_view dataset, uint64_t id,
                                            const ObjectTransform& transform, const UpdateOptions& options) {
  const auto found = FindForObject(dataset, id);
  if (!found.ok()) return found.status();
  return (*found)->objects->Update(id, Checked(transform), options);
}

absl::StatusOr<Object> Router::PatchObject(std::string_view dataset, uint64_t id,
                                           std::string_view merge_patch, const UpdateOptions& options) {
  const auto patch = ParseDocument(merge_patch);
  if (!patch.ok()) {
    return absl::InvalidArgumentError(fmt::format("merge_patch: {}", std::string(patch.status().message())));
  }
  return UpdateObject(
      dataset, id,
      [&patch](std::string_view current) -> absl::StatusOr<std::string> {
        auto document = ParseJson(current);
        if (!document.ok()) return absl::DataLossError("a stored object is not JSON");
        document->merge_patch(*patch);
        return document->dump();
      },
      options);
}

absl::Status Router::DeleteObject(std::string_view dataset, uint64_t id, bool hard) {
  if (!hard) return PatchObject(dataset, id, R"({"active": false})", {.include_inactive = true}).status();
  const auto found = FindForObject(dataset, id);
  if (!found.ok()) return found.status();
  return (*found)->objects->Erase(id);
}

// ---- mappings ----

absl::Status Router::AddMapping(std::string_view dataset, uint64_t from, uint64_t to,
                                std::optional<uint64_t> sequence) {
  const auto found = Find(dataset, Shape::kMappings);
  if (!found.ok()) return found.status();
  if (auto status = ValidateId("from", from); !status.ok()) return status;
  if (auto status = ValidateId("to", to); !status.ok()) return status;
  if (sequence && *sequence > kMaxTimestamp) {
    return absl::InvalidArgumentError(
        fmt::format("sequence: {} is out of range 0..{}", *sequence, kMaxTimestamp));
  }
  return (*found)->mappings->Add(from, to, sequence);
}

absl::StatusOr<bool> Router::RemoveMapping(std::string_view dataset, uint64_t from, uint64_t to) {
  const auto found = Find(dataset, Shape::kMappings);
  if (!found.ok()) return found.status();
  if (auto status = ValidateId("from", from); !status.ok()) return status;
  if (auto status = ValidateId("to", to); !status.ok()) return status;
  return (*found)->mappings->Remove(from, to);
}

absl::StatusOr<MappingPage> Router::ListMapping(std::string_view dataset, uint64_t from,
                                                const MappingListOptions& options) {
  const auto found = Find(dataset, Shape::kMappings);
  if (!found.ok()) return found.status();
  if (auto status = ValidateId("from", from); !status.ok()) return status;
  if (auto status = ValidateListing(options); !status.ok()) return status;
  const uint64_t incarnation = (*found)->spec.incarnation;
  MappingQuery query{.descending = options.order == MappingListOptions::Order::kDescending,
                     .limit = options.limit,
                     .offset = options.offset};
  if (!options.marker.empty()) {
    auto last = OpenMappingMarker(incarnation, from, query.descending, options.marker);
    if (!last.ok()) return last.status();
    query.after = *last;
  }
  auto list = (*found)->mappings->List(from, query);
  if (!list.ok()) return list.status();
  MappingPage page{.entries = std::move(list->entries)};
  if (list->more) page.marker = SealMappingMarker(incarnation, from, query.descending, page.entries.back());
  return page;
}

absl::StatusOr<uint64_t> Router::CountMapping(std::string_view dataset, uint64_t from) {
  const auto found = Find(dataset, Shape::kMappings);
  if (!found.ok()) return found.status();
  if (auto status = ValidateId("from", from); !status.ok()) return status;
  return (*found)->mappings->Count(from);
}

absl::StatusOr<JoinedPage> Router::ListObjects(std::string_view dataset, uint64_t from,
                                               const MappingListOptions& options) {
  auto page = ListMapping(dataset, from, options);
  if (!page.ok()) return page.status();
  JoinedPage joined;
  joined.marker = std::move(page->marker);
  std::map<uint32_t, std::vector<size_t>> places_by_type;
  for (size_t i = 0; i < page->entries.size(); ++i) {
    const MappingEntry& entry = page->entries[i];
    const auto id = ObjectId::FromValue(entry.to);
    joined.objects.push_back({entry, id.ok() ? absl::NotFoundError("not looked up") : id.status()});
    if (id.ok()) places_by_type[id->type()].push_back(i);
  }
  const auto snapshot = snapshot_.Load();
  for (const auto& [type, places] : places_by_type) {
    std::shared_ptr<const Dataset> objects;
    for (const auto& [name, candidate] : *snapshot) {
      if (candidate->spec.shape == Shape::kObjects && candidate->spec.type == type) objects = candidate;
    }
    std::vector<uint64_t> ids;
    for (size_t place : places) ids.push_back(joined.objects[place].entry.to);
    auto found = objects ? objects->objects->GetMany(ids, {}) : std::vector<absl::StatusOr<Object>>();
    for (size_t i = 0; i < places.size(); ++i) {
      joined.objects[places[i]].object =
          objects ? std::move(found[i]) : absl::NotFoundError(fmt::format("no dataset has type {}", type));
    }
  }
  return joined;
}

}  // namespace kvstore
