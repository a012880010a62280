#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "backends/rocksdb/backend.h"
#include "kvstore_api/kvstore.h"

namespace kvstore {
class Router;
}

namespace kvstore::bench {

/// A store in a directory of its own, which the destructor removes. Gives access to the engine beneath.
class BenchStore {
 public:
  /// parent       where the directory is made; empty: the system's place for temporary files.
  /// cache_bytes  the default has room for all data that the benchmarks read, on both sides of a comparison.
  static absl::StatusOr<std::unique_ptr<BenchStore>> Create(const std::string& parent,
                                                            size_t cache_bytes = size_t{2} << 30);
  ~BenchStore();
  BenchStore(const BenchStore&) = delete;
  BenchStore& operator=(const BenchStore&) = delete;

  KVStore& store() { return *store_; }
  /// The same store, as a server takes it.
  Router& router() { return *router_; }
  Backend& backend() { return *backend_; }
  rocks::Engine& engine() { return *engine_; }
  /// Returns the folder of its files.
  const std::filesystem::path& path() const { return dir_; }
  rocksdb::DB& db() { return engine_->db(); }
  /// Returns the column family of a dataset.
  rocksdb::ColumnFamilyHandle* Handle(const std::string& dataset) {
    return engine_->FindFamily(dataset)->handle;
  }

 private:
  BenchStore() = default;

  std::filesystem::path dir_;
  std::unique_ptr<KVStore> store_;
  Router* router_ = nullptr;         // store_
  Backend* backend_ = nullptr;       // of store_
  rocks::Engine* engine_ = nullptr;  // of store_
};

}  // namespace kvstore::bench
