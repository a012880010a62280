#include "bench/harness/bench_store.h"

#include <cerrno>
#include <cstdlib>

#include "base/files.h"
#include "catalog/file_catalog.h"
#include "router/router.h"

namespace kvstore::bench {

absl::StatusOr<std::unique_ptr<BenchStore>> BenchStore::Create(const std::string& parent,
                                                               size_t cache_bytes) {
  namespace fs = std::filesystem;
  std::string path = (parent.empty() ? fs::temp_directory_path() : fs::path(parent)) / "kv-bench-XXXXXX";
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return FileError(path, "create", error.value());
  if (::mkdtemp(path.data()) == nullptr) return FileError(path, "create", errno);
  std::unique_ptr<BenchStore> bench(new BenchStore());
  bench->dir_ = path;
  auto dir = rocks::DataDir::Open(path, /*create=*/true);
  if (!dir.ok()) return dir.status();
  auto catalog = std::make_unique<FileCatalog>(dir->catalog());
  auto backend =
      RocksDbBackend::Open(*std::move(dir), {}, {}, {.cache_bytes = cache_bytes, .cache_answers = false});
  if (!backend.ok()) return backend.status();
  bench->backend_ = backend->get();
  bench->engine_ = &(*backend)->engine();
  Router::Backends backends;
  backends.emplace("rocksdb", *std::move(backend));
  auto router = Router::Open(std::move(catalog), std::move(backends), "rocksdb");
  if (!router.ok()) return router.status();
  bench->router_ = router->get();
  bench->store_ = *std::move(router);
  return bench;
}

BenchStore::~BenchStore() {
  store_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

}  // namespace kvstore::bench
