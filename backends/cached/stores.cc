#include "backends/cached/stores.h"

#include <algorithm>
#include <utility>

#include "backend_api/batch_bytes.h"
#include "base/big_endian.h"
#include "json/json.h"

namespace kvstore::cached {
namespace {

constexpr char kInactive = 1;
/// How many keys of a batch are looked up at once, which bounds what is in memory beyond the batch's limit.
constexpr size_t kLookedUpAtOnce = 32;
constexpr size_t kHeaderBytes = 1 + sizeof(uint64_t);
constexpr size_t kEntryBytes = 2 * sizeof(uint64_t);

absl::StatusOr<Object> Visible(CachedObject found, const ObjectReadOptions& options) {
  if (found.inactive && !options.include_inactive) return InactiveObjectError(found.object.id);
  return std::move(found.object);
}

/// As Visible, for an object that the backend has returned.
absl::StatusOr<Object> VisibleOf(absl::StatusOr<Object> object, const ObjectReadOptions& options) {
  if (object.ok() && !options.include_inactive && IsInactive(object->data))
    return InactiveObjectError(object->id);
  return object;
}

/// Puts what the backend has said into the cache, if it is a value.
template <typename T>
void Keep(Cache& cache, const Found& found, const absl::StatusOr<T>& value) {
  if (!found.lease) return;
  if (!value.ok()) return cache.GiveUp(*found.lease);
  const std::string bytes = EncodeCached(*value);
  const Cache::Filling filling{&*found.lease, bytes};
  cache.Fill({&filling, 1});
}

}  // namespace

std::string EncodeCached(uint64_t count) {
  std::string bytes;
  AppendBigEndian(bytes, count);
  return bytes;
}

std::string EncodeCached(const Object& object) {
  std::string bytes;
  bytes.reserve(kHeaderBytes + object.data.size());
  bytes.push_back(IsInactive(object.data) ? kInactive : 0);
  AppendBigEndian(bytes, object.timestamp);
  bytes.append(object.data);
  return bytes;
}

std::optional<CachedObject> DecodeCachedObject(uint64_t id, std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || (bytes[0] & ~kInactive) != 0) return std::nullopt;
  CachedObject cached;
  cached.inactive = bytes[0] == kInactive;
  cached.object = {.id = id,
                   .data = std::string(bytes.substr(kHeaderBytes)),
                   .timestamp = ReadBigEndian<uint64_t>(bytes.substr(1))};
  return cached;
}

std::string EncodeCached(const MappingList& list) {
  std::string bytes;
  bytes.reserve(1 + list.entries.size() * kEntryBytes);
  bytes.push_back(list.more ? 1 : 0);
  for (const MappingEntry& entry : list.entries) {
    AppendBigEndian(bytes, entry.to);
    AppendBigEndian(bytes, entry.sequence);
  }
  return bytes;
}

std::optional<MappingList> DecodeCachedList(std::string_view bytes) {
  if (bytes.empty() || (bytes[0] & ~1) != 0 || (bytes.size() - 1) % kEntryBytes != 0) return std::nullopt;
  MappingList list;
  list.more = bytes[0] == 1;
  list.entries.reserve((bytes.size() - 1) / kEntryBytes);
  for (size_t at = 1; at < bytes.size(); at += kEntryBytes) {
    list.entries.push_back({.to = ReadBigEndian<uint64_t>(bytes.substr(at)),
                            .sequence = ReadBigEndian<uint64_t>(bytes.substr(at + sizeof(uint64_t)))});
  }
  return list;
}

// ---- objects ----

absl::StatusOr<uint64_t> CachedObjectStore::Create(std::string_view data, const CreateOptions& options) {
  // Nobody has read the new object, so no cache has anything of it; what is not there is not cached.
  return of_->Create(data, options);
}

absl::StatusOr<Object> CachedObjectStore::Get(uint64_t id, const ObjectReadOptions& options) {
  const Cache::Key key{incarnation_, id};
  const Found found = std::move(cache_->Find({&key, 1}, 'v').front());
  if (found.value) {
    if (auto cached = DecodeCachedObject(id, *found.value)) return Visible(*std::move(cached), options);
  }
  auto object = of_->Get(id, {.include_inactive = true});
  Keep(*cache_, found, object);
  return VisibleOf(std::move(object), options);
}

std::vector<absl::StatusOr<Object>> CachedObjectStore::GetMany(std::span<const uint64_t> ids,
                                                               const ObjectReadOptions& options) {
  std::vector<absl::StatusOr<Object>> objects(ids.size(), BatchFullError());
  std::vector<size_t> missing;
  std::vector<uint64_t> missing_ids;
  std::vector<Found> leases;  // of the missing ones
  BatchBytes bytes;
  for (size_t begin = 0; begin < ids.size() && !bytes.full(); begin += kLookedUpAtOnce) {
    const auto some = ids.subspan(begin, std::min(kLookedUpAtOnce, ids.size() - begin));
    std::vector<Cache::Key> keys;
    for (const uint64_t id : some) keys.push_back({incarnation_, id});
    // It waits once, and not for others while it has leases that these may wait for.
    std::vector<Found> found = cache_->Find(keys, 'v', /*wait=*/begin == 0);
    for (size_t i = 0; i < some.size(); ++i) {
      auto cached = found[i].value ? DecodeCachedObject(some[i], *found[i].value) : std::nullopt;
      if (cached) {
        bytes.Add(cached->object.data.size());
        objects[begin + i] = Visible(*std::move(cached), options);
      } else {
        missing.push_back(begin + i);
        missing_ids.push_back(some[i]);
        leases.push_back(std::move(found[i]));
      }
    }
  }
  if (!missing.empty()) {
    auto read = of_->GetMany(missing_ids, {.include_inactive = true});
    std::vector<std::string> encoded(read.size());
    std::vector<Cache::Filling> fillings;
    for (size_t i = 0; i < read.size(); ++i) {
      if (leases[i].lease && read[i].ok()) {
        encoded[i] = EncodeCached(*read[i]);
        fillings.push_back({&*leases[i].lease, encoded[i]});
      } else if (leases[i].lease) {
        cache_->GiveUp(*leases[i].lease);
      }
    }
    cache_->Fill(fillings);
    for (size_t i = 0; i < missing.size(); ++i) {
      if (read[i].ok()) bytes.Add(read[i]->data.size());
      objects[missing[i]] = VisibleOf(std::move(read[i]), options);
    }
  }
  if (!bytes.full()) return objects;
  // Together they may be more than a batch has room for, though each part alone was not.
  BatchBytes kept;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!objects[i].ok()) continue;
    if (kept.full() && i != 0) {
      objects[i] = BatchFullError();
    } else {
      kept.Add(objects[i]->data.size());
    }
  }
  return objects;
}

void CachedObjectStore::CheckLater(uint64_t id) {
  cache_->Check({incarnation_, id}, 'v', [of = of_, id]() -> absl::StatusOr<std::optional<std::string>> {
    const auto object = of->Get(id, {.include_inactive = true});
    if (absl::IsNotFound(object.status())) return std::nullopt;
    if (!object.ok()) return object.status();
    return EncodeCached(*object);
  });
}

absl::StatusOr<Object> CachedObjectStore::Update(uint64_t id, const ObjectTransform& transform,
                                                 const UpdateOptions& options) {
  absl::StatusOr<Object> updated = absl::UnknownError("not called");
  const auto status = cache_->Write({incarnation_, id}, [&] {
    updated = of_->Update(id, transform, options);
    return updated.status();
  });
  if (!status.ok()) return status;
  CheckLater(id);
  return updated;
}

absl::Status CachedObjectStore::Erase(uint64_t id) {
  auto status = cache_->Write({incarnation_, id}, [&] { return of_->Erase(id); });
  if (status.ok()) CheckLater(id);
  return status;
}

absl::StatusOr<ObjectScanPage> CachedObjectStore::Scan(const IdRange& range,
                                                       const ObjectScanOptions& options) {
  return of_->Scan(range, options);
}

absl::StatusOr<std::vector<Partition>> CachedObjectStore::Partitions(size_t wanted) {
  return of_->Partitions(wanted);
}

// ---- mappings ----

void CachedMappingStore::CheckLater(uint64_t from) {
  cache_->Check({incarnation_, from}, 'd', [of = of_, from]() -> absl::StatusOr<std::optional<std::string>> {
    const auto list = of->List(from, {.descending = true, .limit = kCachedEntries, .offset = 0, .after = {}});
    if (!list.ok()) return list.status();
    return EncodeCached(*list);
  });
}

absl::Status CachedMappingStore::Add(uint64_t from, uint64_t to, std::optional<uint64_t> sequence) {
  auto status = cache_->Write({incarnation_, from}, [&] { return of_->Add(from, to, sequence); });
  if (status.ok()) CheckLater(from);
  return status;
}

absl::StatusOr<bool> CachedMappingStore::Remove(uint64_t from, uint64_t to) {
  absl::StatusOr<bool> removed = absl::UnknownError("not called");
  const auto status = cache_->Write({incarnation_, from}, [&] {
    removed = of_->Remove(from, to);
    return removed.status();
  });
  if (!status.ok()) return status;
  CheckLater(from);
  return removed;
}

absl::StatusOr<MappingList> CachedMappingStore::List(uint64_t from, const MappingQuery& query) {
  if (query.after || query.offset >= kCachedEntries) return of_->List(from, query);
  const Cache::Key key{incarnation_, from};
  const Found found = std::move(cache_->Find({&key, 1}, query.descending ? 'd' : 'a').front());
  std::optional<MappingList> first;
  if (found.value) first = DecodeCachedList(*found.value);
  if (!first && found.lease) {
    auto read = of_->List(
        from, {.descending = query.descending, .limit = kCachedEntries, .offset = 0, .after = std::nullopt});
    Keep(*cache_, found, read);
    if (!read.ok()) return read.status();
    first = *std::move(read);
  }
  // The cached list is enough if it is the whole list, or has as many entries as are wanted.
  if (!first || (first->more && query.offset + query.limit > first->entries.size()))
    return of_->List(from, query);
  const std::vector<MappingEntry>& entries = first->entries;
  const size_t begin = std::min<size_t>(query.offset, entries.size());
  const size_t end = std::min<size_t>(begin + query.limit, entries.size());
  MappingList list;
  list.more = end < entries.size() || first->more;
  list.entries.assign(entries.begin() + static_cast<ptrdiff_t>(begin),
                      entries.begin() + static_cast<ptrdiff_t>(end));
  return list;
}

absl::StatusOr<uint64_t> CachedMappingStore::Count(uint64_t from) {
  const Cache::Key key{incarnation_, from};
  const Found found = std::move(cache_->Find({&key, 1}, 'c').front());
  if (found.value && found.value->size() == sizeof(uint64_t)) return ReadBigEndian<uint64_t>(*found.value);
  auto count = of_->Count(from);
  Keep(*cache_, found, count);
  return count;
}

absl::StatusOr<MappingScanPage> CachedMappingStore::Scan(const MappingPosition& start, uint64_t end,
                                                         uint32_t limit) {
  return of_->Scan(start, end, limit);
}

absl::StatusOr<std::vector<Partition>> CachedMappingStore::Partitions(size_t wanted) {
  return of_->Partitions(wanted);
}

}  // namespace kvstore::cached
