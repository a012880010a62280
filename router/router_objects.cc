#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend_api/batch_bytes.h"
#include "backend_api/marker.h"
#include "backend_api/scan_budget.h"
#include "backend_api/validate.h"
#include "idgen/object_id.h"
#include "json/json.h"
#include "kvstore_api/limits.h"
#include "router/router.h"

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

/// How many objects of a joined page are read at first, before their average size is known.
constexpr size_t kFirstJoined = 512;

absl::Status ValidateCreate(const CreateOptions& options) {
  if (options.near && options.shard)
    return absl::InvalidArgumentError("near, shard: give one of them, not both");
  if (options.near) {
    // The ID may have any type, because objects of different datasets can live on one shard.
    if (auto id = ObjectId::FromValue(*options.near); !id.ok()) {
      return absl::InvalidArgumentError(fmt::format("near: {}", std::string(id.status().message())));
    }
  }
  if (options.shard && *options.shard > ObjectId::kMaxShard) {
    return absl::InvalidArgumentError(
        fmt::format("shard: {} is out of range 0..{}", *options.shard, ObjectId::kMaxShard));
  }
  if (!options.request_id.empty() && options.request_id.size() != kRequestIdBytes) {
    return absl::InvalidArgumentError(
        fmt::format("request_id: has {} bytes, not {}", options.request_id.size(), kRequestIdBytes));
  }
  return absl::OkStatus();
}

/// Returns a transform that also checks that the result is a document. `transform` must outlive it.
ObjectTransform Checked(const ObjectTransform& transform) {
  return [&transform](std::string_view current) -> absl::StatusOr<std::string> {
    auto data = transform(current);
    if (!data.ok()) return data;
    if (auto status = CheckDocument(*data); !status.ok()) return status;
    return data;
  };
}

/// A page of a scan looks at about so many objects or entries. If it has found nothing by then it ends empty,
/// so that its caller can go on, or not.
constexpr uint64_t kMaxPageExamined = 65'536;

/// Returns the error unless a marker, which lies at this ID, is one of a scan of the range.
absl::Status CheckInside(const IdRange& range, uint64_t id) {
  if (id >= range.start && id < range.end) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("marker: lies at ID {}, outside of start_id {} and end_id {}; continue a scan with the "
                  "range that it was begun with",
                  id, range.start, range.end));
}

absl::Status ValidateEntry(uint64_t from, uint64_t to) {
  if (auto status = ValidateId("from", from); !status.ok()) return status;
  return ValidateId("to", to);
}

}  // namespace

absl::StatusOr<uint64_t> Router::CreateObject(std::string_view dataset, std::string_view data,
                                              const CreateOptions& options) {
  const auto check = [&](const ServedDataset&) -> absl::Status {
    if (auto status = ValidateCreate(options); !status.ok()) return status;
    return CheckDocument(data);
  };
  return Route(dataset, Shape::kObjects, check,
               [&](const ServedDataset& found) { return found.objects->Create(data, options); });
}

absl::StatusOr<Object> Router::GetObject(std::string_view dataset, uint64_t id,
                                         const ObjectReadOptions& options) {
  const auto check = [&](const ServedDataset& found) { return CheckId(id, found.spec.type, dataset); };
  return Route(dataset, Shape::kObjects, check, [&](const ServedDataset& found) -> absl::StatusOr<Object> {
    auto object = found.objects->Get(id, options);
    // An object that is not there is a difference if the other side has it.
    if (object.ok() || absl::IsNotFound(object.status())) keeper_.read_taps().OnObject(dataset, id);
    return object;
  });
}

absl::StatusOr<std::vector<absl::StatusOr<Object>>> Router::GetObjects(std::string_view dataset,
                                                                       std::span<const uint64_t> ids,
                                                                       const ObjectReadOptions& options) {
  return RouteBatch<absl::StatusOr<Object>>(
      dataset, Shape::kObjects, ids,
      [&](const ServedDataset& found, uint64_t id) { return CheckId(id, found.spec.type, dataset); },
      [&](const ServedDataset& found, std::span<const uint64_t> valid) {
        auto objects = found.objects->GetMany(valid, options);
        for (size_t i = 0; i < valid.size(); ++i) {
          if (objects[i].ok() || absl::IsNotFound(objects[i].status())) {
            keeper_.read_taps().OnObject(dataset, valid[i]);
          }
        }
        return objects;
      });
}

absl::StatusOr<Object> Router::UpdateObject(std::string_view dataset, uint64_t id,
                                            const ObjectTransform& transform, const UpdateOptions& options) {
  const auto check = [&](const ServedDataset& found) { return CheckId(id, found.spec.type, dataset); };
  return Route(dataset, Shape::kObjects, check, [&](const ServedDataset& found) -> absl::StatusOr<Object> {
    return found.objects->Update(id, Checked(transform), options);
  });
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
        auto document = ParseStoredJson(current);
        if (!document.ok()) return absl::DataLossError("a stored object is not JSON");
        document->merge_patch(*patch);
        return document->dump();
      },
      options);
}

absl::Status Router::DeleteObject(std::string_view dataset, uint64_t id, bool hard) {
  if (!hard) return PatchObject(dataset, id, R"({"active": false})", {.include_inactive = true}).status();
  const auto check = [&](const ServedDataset& found) { return CheckId(id, found.spec.type, dataset); };
  return Route(dataset, Shape::kObjects, check,
               [&](const ServedDataset& found) -> absl::Status { return found.objects->Erase(id); });
}

absl::StatusOr<ObjectPage> Router::ScanObjects(std::string_view dataset, const IdRange& range,
                                               const ObjectScanOptions& options) {
  const auto check = [&](const ServedDataset&) { return ValidateObjectScan(range, options); };
  return Route(
      dataset, Shape::kObjects, check, [&](const ServedDataset& found) -> absl::StatusOr<ObjectPage> {
        const uint64_t incarnation = found.spec.incarnation;
        IdRange rest = range;
        if (!options.marker.empty()) {
          const auto next = OpenObjectScanMarker(incarnation, options.marker);
          if (!next.ok()) return next.status();
          if (auto status = CheckInside(range, *next); !status.ok()) return status;
          rest.start = *next;
        }
        const ScanBudget budget(kMaxPageExamined);
        auto page = found.objects->Scan(rest, options);
        if (!page.ok()) return page.status();
        return ObjectPage{.objects = std::move(page->objects),
                          .marker = page->next ? SealObjectScanMarker(incarnation, *page->next) : ""};
      });
}

// ---- mappings ----

absl::Status Router::AddMapping(std::string_view dataset, uint64_t from, uint64_t to,
                                std::optional<uint64_t> sequence) {
  const auto check = [&](const ServedDataset&) -> absl::Status {
    if (auto status = ValidateEntry(from, to); !status.ok()) return status;
    if (!sequence || *sequence <= kMaxTimestamp) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("sequence: {} is out of range 0..{}", *sequence, kMaxTimestamp));
  };
  return Route(dataset, Shape::kMappings, check,
               [&](const ServedDataset& found) { return found.mappings->Add(from, to, sequence); });
}

absl::StatusOr<bool> Router::RemoveMapping(std::string_view dataset, uint64_t from, uint64_t to) {
  const auto check = [&](const ServedDataset&) { return ValidateEntry(from, to); };
  return Route(dataset, Shape::kMappings, check,
               [&](const ServedDataset& found) { return found.mappings->Remove(from, to); });
}

absl::StatusOr<MappingPage> Router::List(std::string_view dataset, uint64_t from,
                                         const MappingListOptions& options, uint64_t& incarnation) {
  const auto check = [&](const ServedDataset&) {
    const absl::Status status = ValidateId("from", from);
    return status.ok() ? ValidateListing(options) : status;
  };
  return Route(dataset, Shape::kMappings, check,
               [&](const ServedDataset& found) -> absl::StatusOr<MappingPage> {
                 incarnation = found.spec.incarnation;
                 MappingQuery query{.descending = options.order == MappingListOptions::Order::kDescending,
                                    .limit = options.limit,
                                    .offset = options.offset};
                 if (!options.marker.empty()) {
                   auto last = OpenMappingMarker(incarnation, from, query.descending, options.marker);
                   if (!last.ok()) return last.status();
                   query.after = *last;
                 }
                 auto list = found.mappings->List(from, query);
                 if (!list.ok()) return list.status();
                 keeper_.read_taps().OnMapping(dataset, from, list->entries);
                 MappingPage page{.entries = std::move(list->entries)};
                 if (list->more)
                   page.marker = SealMappingMarker(incarnation, from, query.descending, page.entries.back());
                 return page;
               });
}

absl::StatusOr<MappingPage> Router::ListMapping(std::string_view dataset, uint64_t from,
                                                const MappingListOptions& options) {
  uint64_t incarnation = 0;
  return List(dataset, from, options, incarnation);
}

absl::StatusOr<uint64_t> Router::CountMapping(std::string_view dataset, uint64_t from) {
  const auto check = [&](const ServedDataset&) { return ValidateId("from", from); };
  return Route(dataset, Shape::kMappings, check,
               [&](const ServedDataset& found) { return found.mappings->Count(from); });
}

std::vector<JoinedObject> Router::Join(std::span<const MappingEntry> entries) {
  std::vector<JoinedObject> joined;
  std::map<uint32_t, std::vector<size_t>> places_by_type;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto id = ObjectId::FromValue(entries[i].to);
    joined.push_back({entries[i], id.ok() ? absl::NotFoundError("not looked up") : id.status()});
    if (id.ok()) places_by_type[id->type()].push_back(i);
  }
  const auto snapshot = directory().Load();
  for (const auto& [type, places] : places_by_type) {
    std::string dataset;
    absl::Status none = absl::NotFoundError(fmt::format("no dataset has type {}", type));
    for (const auto& [name, candidate] : *snapshot) {
      if (candidate->spec.shape == Shape::kObjects && candidate->spec.type == type) dataset = name;
      // The type may be that of a dataset of which nothing but the name is known. Its objects are not gone.
      if (candidate->spec.backend.empty() && !candidate->problem.ok()) none = candidate->problem;
    }
    std::vector<uint64_t> ids;
    for (const size_t place : places) ids.push_back(entries[place].to);
    auto found = dataset.empty() ? absl::StatusOr<std::vector<absl::StatusOr<Object>>>(none)
                                 : GetObjects(dataset, ids, {});
    for (size_t i = 0; i < places.size(); ++i) {
      joined[places[i]].object = found.ok() ? std::move((*found)[i]) : found.status();
    }
  }
  return joined;
}

absl::StatusOr<JoinedPage> Router::ListObjects(std::string_view dataset, uint64_t from,
                                               const MappingListOptions& options) {
  uint64_t incarnation = 0;
  auto page = List(dataset, from, options, incarnation);
  if (!page.ok()) return page.status();
  JoinedPage joined{.marker = std::move(page->marker)};
  // Objects are read in groups, each as large as will fit by the average size so far.
  const std::span<const MappingEntry> entries(page->entries);
  size_t bytes = 0;       // of the page
  size_t read = 0;        // objects, counting again those that are read again
  size_t read_bytes = 0;  // of these objects
  for (size_t done = 0; done < entries.size();) {
    const size_t left = options.max_bytes - std::min(bytes, options.max_bytes);
    const size_t average = read == 0 ? 0 : read_bytes / read;
    const size_t some = done == 0 ? kFirstJoined : std::max<size_t>(1, left / std::max<size_t>(1, average));
    // Without this limit the backend would read 64 MiB for a page of 1 MiB.
    const SmallBatches small(std::min(left, SmallBatches::most()));
    std::vector<JoinedObject> group = Join(entries.subspan(done, std::min(some, entries.size() - done)));
    for (const JoinedObject& object : group) {
      if (IsPaused(object.object.status())) continue;
      ++read;
      if (object.object.ok()) read_bytes += object.object->data.size();
    }
    const size_t before = done;
    for (JoinedObject& object : group) {
      // The backend had no room for this object, though maybe for others after it, since it need not read in
      // this order. The next group begins with it, and the first of a group is always read.
      if (done > before && IsPaused(object.object.status())) break;
      const size_t size = object.object.ok() ? object.object->data.size() : 0;
      if (done > 0 && bytes + size > options.max_bytes) {
        // The page is full: it ends before this object.
        joined.marker =
            SealMappingMarker(incarnation, from, options.order == MappingListOptions::Order::kDescending,
                              joined.objects.back().entry);
        return joined;
      }
      bytes += size;
      ++done;
      joined.objects.push_back(std::move(object));
    }
  }
  return joined;
}

absl::StatusOr<ScannedMappingPage> Router::ScanMappings(std::string_view dataset, const IdRange& range,
                                                        const MappingScanOptions& options) {
  const auto check = [&](const ServedDataset&) { return ValidateMappingScan(range, options); };
  return Route(dataset, Shape::kMappings, check,
               [&](const ServedDataset& found) -> absl::StatusOr<ScannedMappingPage> {
                 const uint64_t incarnation = found.spec.incarnation;
                 MappingPosition start{.from = range.start};
                 if (!options.marker.empty()) {
                   const auto next = OpenMappingScanMarker(incarnation, options.marker);
                   if (!next.ok()) return next.status();
                   if (auto status = CheckInside(range, next->from); !status.ok()) return status;
                   start = *next;
                 }
                 const ScanBudget budget(kMaxPageExamined);
                 auto page = found.mappings->Scan(start, range.end, options.limit);
                 if (!page.ok()) return page.status();
                 return ScannedMappingPage{
                     .entries = std::move(page->entries),
                     .marker = page->next ? SealMappingScanMarker(incarnation, *page->next) : ""};
               });
}

}  // namespace kvstore
