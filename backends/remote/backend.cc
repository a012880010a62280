#include "backends/remote/backend.h"

#include <fmt/format.h>

#include <utility>

#include "backends/remote/stores.h"

namespace kvstore {

absl::StatusOr<std::unique_ptr<RemoteBackend>> RemoteBackend::Connect(const std::string& address,
                                                                      const ConnectOptions& options) {
  auto server = client::Client::Open(address, options);
  if (!server.ok()) return server.status();
  return std::make_unique<RemoteBackend>(*std::move(server));
}

absl::Status RemoteBackend::CheckThere(const DatasetSpec& spec) {
  const auto there = server_->GetDataset(spec.name);
  const bool gone = absl::IsNotFound(there.status());
  if (gone || (there.ok() && there->incarnation != spec.incarnation)) {
    return absl::DataLossError(fmt::format("dataset: the data of '{}' is not at server {}{}", spec.name,
                                           server_->address(),
                                           gone ? "" : ", which has another dataset of that name"));
  }
  // A server that cannot be reached may well have the dataset.
  if (absl::IsUnavailable(there.status()) || absl::IsDeadlineExceeded(there.status()))
    return absl::OkStatus();
  return there.status();
}

absl::Status RemoteBackend::CreateDataset(const DatasetSpec& spec) {
  DatasetSpec there = spec;
  // Each side has its own names of backends, so the server chooses one of its own.
  there.backend.clear();
  return server_->CreateDataset(there);
}

absl::Status RemoteBackend::AlterDataset(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  return server_->AlterDataset(spec.name, {.max_versions = spec.max_versions,
                                           .ttl_ms = spec.ttl_ms,
                                           .durability = spec.durability,
                                           .keep_changes_ms = {}});
}

absl::Status RemoteBackend::DropDataset(const DatasetSpec& spec) {
  const absl::Status status = server_->DropDataset(spec.name, {.incarnation = spec.incarnation});
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::shared_ptr<RowStore>> RemoteBackend::OpenRows(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  return std::make_shared<remote::RemoteRowStore>(server_, spec);
}

absl::StatusOr<std::shared_ptr<ObjectStore>> RemoteBackend::OpenObjects(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  return std::make_shared<remote::RemoteObjectStore>(server_, spec);
}

absl::StatusOr<std::shared_ptr<MappingStore>> RemoteBackend::OpenMappings(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  return std::make_shared<remote::RemoteMappingStore>(server_, spec);
}

absl::StatusOr<ReclaimResult> RemoteBackend::Reclaim(const DatasetSpec& spec, const Progress& progress) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  return server_->Compact(spec.name, progress);
}

absl::StatusOr<DatasetStats> RemoteBackend::Stats(const DatasetSpec& spec) {
  if (auto status = CheckThere(spec); !status.ok()) return status;
  return server_->GetStats(spec.name);
}

absl::StatusOr<std::unique_ptr<MigrationEndpoint>> RemoteBackend::OpenForMigration(const DatasetSpec& spec) {
  return server_->OpenForMigration(spec);
}

}  // namespace kvstore
