#include "tests/backends/remote/remote_under_test.h"

#include <utility>

#include "backends/remote/backend.h"
#include "catalog/file_catalog.h"
#include "router/router.h"
#include "server/server.h"
#include "tests/support/eventually.h"

namespace kvstore::testing {
namespace {

constexpr char kName[] = "inner";

/// As the catalog of several processes is one.
class SharedCatalog : public FileCatalog {
 public:
  using FileCatalog::FileCatalog;
  bool shared() const override { return true; }
};

/// A backend with the server in front of which it stands. What it calls goes over the network.
class BehindServer : public Backend {
 public:
  static absl::StatusOr<std::unique_ptr<Backend>> Open(std::unique_ptr<Backend> inner,
                                                       const std::filesystem::path& dir) {
    auto behind = std::make_unique<BehindServer>();
    behind->inner_ = inner.get();
    Router::Backends backends;
    backends.emplace(kName, std::move(inner));
    auto router =
        Router::Open(std::make_unique<SharedCatalog>(dir / "catalog.json"), std::move(backends), kName);
    if (!router.ok()) return router.status();
    behind->router_ = *std::move(router);
    ServerOptions options;
    options.listen = {"127.0.0.1:0"};
    auto server = Server::Start(*behind->router_, options);
    if (!server.ok()) return server.status();
    behind->server_ = *std::move(server);
    auto client = RemoteBackend::Connect(behind->server_->addresses()[0], {});
    if (!client.ok()) return client.status();
    behind->client_ = *std::move(client);
    behind->called_ = behind->client_.get();
    return behind;
  }

  Backend& inner() { return *inner_; }
  /// Only what a migration asks goes over the network from now on.
  void CallInner() { called_ = inner_; }

  Capabilities capabilities() const override { return client_->capabilities(); }
  absl::Status CreateDataset(const DatasetSpec& spec) override { return called_->CreateDataset(spec); }
  absl::Status AlterDataset(const DatasetSpec& spec) override { return called_->AlterDataset(spec); }
  absl::Status DropDataset(const DatasetSpec& spec) override { return called_->DropDataset(spec); }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    return called_->OpenRows(spec);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override {
    return called_->OpenObjects(spec);
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override {
    return called_->OpenMappings(spec);
  }
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override {
    return called_->Reclaim(spec, progress);
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override { return called_->Stats(spec); }
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override {
    // The catalog of the two servers has the dataset, on another backend, and its migration.
    auto status = router_->keeper().WithCatalog([&](Catalog& catalog) -> absl::Status {
      if (const auto recorded = catalog.GetRecord(spec.name); recorded.ok()) return absl::OkStatus();
      if (auto put = catalog.PutRecord(spec.name, "{}", -1); !put.ok()) return put.status();
      const auto contents = catalog.Load();
      if (!contents.ok()) return contents.status();
      DatasetSpec elsewhere = spec;
      elsewhere.backend = "elsewhere";
      return catalog.Put({.spec = elsewhere}, contents->version).status();
    });
    if (!status.ok()) return status;
    router_->keeper().RequestRefresh();
    if (!Eventually([&] { return router_->GetDataset(spec.name).ok(); })) {
      return absl::InternalError("the dataset did not become known");
    }
    DatasetSpec side = spec;
    side.backend = kName;
    return client_->OpenForMigration(side);
  }
  void Describe(MetricsSink& sink) const override { client_->Describe(sink); }

 private:
  Backend* inner_ = nullptr;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RemoteBackend> client_;
  Backend* called_ = nullptr;
};

}  // namespace

UnderTest Remote(const UnderTest& inner, int hops) {
  UnderTest remote = inner;
  remote.name = inner.name + "Remote" + (hops > 1 ? std::to_string(hops) : "");
  remote.open = [inner, hops](
                    const std::filesystem::path& dir,
                    std::span<const DatasetSpec> known) -> absl::StatusOr<std::unique_ptr<Backend>> {
    const std::filesystem::path inside = dir / "inner";
    std::filesystem::create_directories(inside);
    const UnderTest next = hops > 1 ? Remote(inner, hops - 1) : inner;
    auto opened = next.open(inside, known);
    if (!opened.ok()) return opened.status();
    return BehindServer::Open(*std::move(opened), dir);
  };
  remote.disturb = [inner, hops](Backend& backend, const DatasetSpec& spec, Random& random) {
    const UnderTest next = hops > 1 ? Remote(inner, hops - 1) : inner;
    next.disturb(dynamic_cast<BehindServer&>(backend).inner(), spec, random);
  };
  remote.operations = inner.operations / 4;
  return remote;
}

UnderTest RemoteEndpoints(const UnderTest& inner) {
  UnderTest remote = Remote(inner);
  remote.name = inner.name + "RemoteEndpoints";
  remote.open = [open = remote.open](
                    const std::filesystem::path& dir,
                    std::span<const DatasetSpec> known) -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto opened = open(dir, known);
    if (opened.ok()) dynamic_cast<BehindServer&>(**opened).CallInner();
    return opened;
  };
  return remote;
}

}  // namespace kvstore::testing
