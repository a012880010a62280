#include "backup/destination.h"

#include <fmt/format.h>

#include <utility>

#include "backup/layout.h"
#include "backup/list.h"

namespace kvstore::backup {

absl::StatusOr<Destination> Destination::LookAt(BlobStore& blobs, uint64_t now_ms) {
  Destination destination;
  destination.now_ms_ = now_ms;
  if (auto status = destination.ReadBase(blobs); !status.ok()) return status;
  auto objects = ListAll(blobs, kObjectPrefix);
  if (!objects.ok()) return objects.status();
  for (BlobEntry& object : *objects) {
    std::string name = object.name;
    destination.objects_.emplace(std::move(name), std::move(object));
  }
  return destination;
}

absl::Status Destination::ReadBase(BlobStore& blobs) {
  const auto list = ListBackups(blobs);
  if (!list.ok()) return list.status();
  if (!list->live.empty()) newest_ = list->live.back();
  for (auto id = list->live.rbegin(); id != list->live.rend(); ++id) {
    auto manifest = ReadManifest(blobs, *id);
    const absl::Status& read = manifest.status();
    if (absl::IsDataLoss(read) || absl::IsNotFound(read) || absl::IsFailedPrecondition(read)) continue;
    if (!manifest.ok()) return manifest.status();
    for (BackedUpFile& file : manifest->files) {
      std::string identity(IdentityOf(file.blob));
      in_base_.insert_or_assign(std::move(identity), std::move(file));
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

const BackedUpFile* Destination::InBase(std::string_view identity, uint64_t size) const {
  const auto base = in_base_.find(identity);
  return base != in_base_.end() && base->second.size == size ? &base->second : nullptr;
}

const BackedUpFile* Destination::Kept(std::string_view identity, uint64_t size) const {
  const BackedUpFile* const base = InBase(identity, size);
  if (base == nullptr) return nullptr;
  const auto object = objects_.find(base->blob);
  return object != objects_.end() && object->second.size == size ? base : nullptr;
}

std::string Destination::YoungObject(std::string_view identity, uint64_t size) const {
  for (auto at = objects_.lower_bound(identity); at != objects_.end() && at->first.starts_with(identity);
       ++at) {
    const BlobEntry& object = at->second;
    const bool is_young = object.modified_ms + kReuseMs > now_ms_;
    if (IdentityOf(at->first) == identity && object.size == size && is_young) return at->first;
  }
  return "";
}

std::vector<std::string> Destination::NamesFor(std::string_view identity, uint64_t size,
                                               std::string_view id) const {
  std::vector<std::string> names;
  const BackedUpFile* const base = InBase(identity, size);
  if (base != nullptr && !objects_.contains(base->blob)) names.push_back(base->blob);
  names.push_back(fmt::format("{}.{}", identity, id));
  return names;
}

}  // namespace kvstore::backup
