#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend_api/mapping_store.h"
#include "backend_api/object_store.h"
#include "backends/cached/protocol/cache.h"
#include "kvstore_api/dataset.h"

namespace kvstore::cached {

/// Objects through a cache. A cached object is one byte of flags (1: it is inactive), its timestamp as
/// eight bytes, big-endian, and its document. Thread-safe.
class CachedObjectStore : public ObjectStore {
 public:
  CachedObjectStore(std::shared_ptr<ObjectStore> of, std::shared_ptr<Cache> cache, const DatasetSpec& spec)
      : of_(std::move(of)), cache_(std::move(cache)), incarnation_(spec.incarnation) {}

  // The methods of ObjectStore.
#define KV_OBJECT_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  void CheckLater(uint64_t id);

  const std::shared_ptr<ObjectStore> of_;
  const std::shared_ptr<Cache> cache_;
  const uint64_t incarnation_;
};

/// Mappings through a cache, which has of each ID its first kCachedEntries entries in ascending order (part
/// 'a'), in descending order ('d'), and how many there are ('c'). A list is a byte that says whether there
/// are more entries, and 16 bytes for each: to, sequence. All numbers are big-endian. Thread-safe.
class CachedMappingStore : public MappingStore {
 public:
  static constexpr uint32_t kCachedEntries = 128;

  CachedMappingStore(std::shared_ptr<MappingStore> of, std::shared_ptr<Cache> cache, const DatasetSpec& spec)
      : of_(std::move(of)), cache_(std::move(cache)), incarnation_(spec.incarnation) {}

  // The methods of MappingStore.
#define KV_MAPPING_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  void CheckLater(uint64_t from);

  const std::shared_ptr<MappingStore> of_;
  const std::shared_ptr<Cache> cache_;
  const uint64_t incarnation_;
};

/// Encodes an object as the cache stores it (see CachedObjectStore).
std::string EncodeCached(const Object& object);
/// An object of the cache. An inactive one is returned only to calls that ask for such objects.
struct CachedObject {
  Object object;
  bool inactive = false;
};
/// Decodes what EncodeCached made of an object; nullopt if the bytes have another form, which is then a cache
/// miss.
std::optional<CachedObject> DecodeCachedObject(uint64_t id, std::string_view bytes);
/// Encodes a list as the cache stores it (see CachedMappingStore).
std::string EncodeCached(const MappingList& list);
/// Decodes what EncodeCached made of a list; nullopt as for objects.
std::optional<MappingList> DecodeCachedList(std::string_view bytes);
/// Encodes the number of entries of an ID, as eight bytes.
std::string EncodeCached(uint64_t count);

}  // namespace kvstore::cached
