#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_api/mapping_store.h"
#include "backend_api/object_store.h"
#include "backend_api/row_store.h"
#include "kvstore_api/dataset.h"
#include "kvstore_api/kvstore.h"

/// The stores of a dataset on another server. Each call is forwarded to the server, and positions are sent as
/// markers. Thread-safe.
namespace kvstore::remote {

class RemoteRowStore : public RowStore {
 public:
  RemoteRowStore(std::shared_ptr<KVStore> server, const DatasetSpec& spec)
      : server_(std::move(server)), dataset_(spec.name), incarnation_(spec.incarnation) {}

  // The methods of RowStore.
#define KV_ROW_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  /// Opens the marker of a page that the server has answered.
  absl::StatusOr<RowPage> Open(std::string_view row, absl::StatusOr<Row> page) const;

  const std::shared_ptr<KVStore> server_;
  const std::string dataset_;
  const uint64_t incarnation_;
};

class RemoteObjectStore : public ObjectStore {
 public:
  RemoteObjectStore(std::shared_ptr<KVStore> server, const DatasetSpec& spec)
      : server_(std::move(server)), dataset_(spec.name), incarnation_(spec.incarnation) {}

  // The methods of ObjectStore.
#define KV_OBJECT_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  const std::shared_ptr<KVStore> server_;
  const std::string dataset_;
  const uint64_t incarnation_;
};

class RemoteMappingStore : public MappingStore {
 public:
  RemoteMappingStore(std::shared_ptr<KVStore> server, const DatasetSpec& spec)
      : server_(std::move(server)), dataset_(spec.name), incarnation_(spec.incarnation) {}

  // The methods of MappingStore.
#define KV_MAPPING_METHOD(name, result, parameters) result name parameters override;
#include "backend_api/operations.def"

 private:
  const std::shared_ptr<KVStore> server_;
  const std::string dataset_;
  const uint64_t incarnation_;
};

}  // namespace kvstore::remote
