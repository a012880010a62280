#include "tests/backends/remote/remote_under_test.h"

#include <utility>

#include "backends/remote/backend.h"
#include "kvstore_api/file_catalog.h"
#include "kvstore_api/router.h"
#include "server/server.h"

namespace kvstore::testing {
namespace {

constexpr char kName[] = "inner";

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
        Router::Open(std::make_unique<FileCatalog>(dir / "catalog.json"), std::move(backends), kName);
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
    return behind;
  }

  Backend& inner() { return *inner_; }

  Capabilities capabilities() const override { return client_->capabilities(); }
  absl::Status CreateDataset(const DatasetSpec& spec) override { return client_->CreateDataset(spec); }
  absl::Status AlterDataset(const DatasetSpec& spec) override { return client_->AlterDataset(spec); }
  absl::Status DropDataset(const DatasetSpec& spec) override { return client_->DropDataset(spec); }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    return client_->OpenRows(spec);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override {
    return client_->OpenObjects(spec);
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override {
    return client_->OpenMappings(spec);
  }
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override {
    return client_->Reclaim(spec, progress);
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override { return client_->Stats(spec); }
  void Describe(MetricsSink& sink) const override { client_->Describe(sink); }

 private:
  Backend* inner_ = nullptr;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RemoteBackend> client_;
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

}  // namespace kvstore::testing
