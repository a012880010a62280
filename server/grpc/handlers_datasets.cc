#include <algorithm>
#include <utility>

#include "kvstore_api/limits.h"
#include "server/grpc/handlers.h"
#include "wire/convert.h"

namespace kvstore::server {

absl::Status Handle(KVStore& store, const v1::CreateDatasetRequest& request, v1::CreateDatasetResponse&) {
  const auto spec = wire::FromWire(request.dataset());
  if (!spec.ok()) return spec.status();
  return store.CreateDataset(*spec);
}

absl::Status Handle(KVStore& store, const v1::AlterDatasetRequest& request, v1::AlterDatasetResponse&) {
  DatasetChange change;
  if (request.has_max_versions()) change.max_versions = request.max_versions();
  if (request.has_ttl_ms()) change.ttl_ms = request.ttl_ms();
  if (request.has_keep_changes_ms()) change.keep_changes_ms = request.keep_changes_ms();
  if (request.has_durability()) {
    const auto durability = wire::FromWire(request.durability());
    if (!durability.ok()) return durability.status();
    change.durability = *durability;
  }
  return store.AlterDataset(request.dataset(), change);
}

absl::Status Handle(KVStore& store, const v1::DropDatasetRequest& request, v1::DropDatasetResponse&) {
  return store.DropDataset(request.dataset(), {.incarnation = request.incarnation()});
}

absl::Status Handle(KVStore& store, const v1::GetDatasetRequest& request, v1::GetDatasetResponse& response) {
  const auto spec = store.GetDataset(request.dataset());
  if (!spec.ok()) return spec.status();
  wire::ToWire(*spec, *response.mutable_dataset());
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::ListDatasetsRequest&, v1::ListDatasetsResponse& response) {
  const auto specs = store.ListDatasets();
  if (!specs.ok()) return specs.status();
  for (const DatasetSpec& spec : *specs) wire::ToWire(spec, *response.add_datasets());
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::GetStatsRequest& request, v1::GetStatsResponse& response) {
  const auto stats = store.GetStats(request.dataset());
  if (!stats.ok()) return stats.status();
  response.set_approximate_bytes(stats->approximate_bytes);
  response.set_approximate_entries(stats->approximate_entries);
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::ReadChangesRequest& request,
                    v1::ReadChangesResponse& response) {
  ChangeOptions options{.max_bytes = kMaxWireBytes};
  if (request.has_limit()) options.limit = request.limit();
  if (request.has_max_bytes()) {
    options.max_bytes = static_cast<size_t>(std::min<uint64_t>(request.max_bytes(), kMaxWireBytes));
  }
  auto page = store.ReadChanges(request.dataset(), request.token(), options);
  if (!page.ok()) return page.status();
  for (Change& change : page->changes) wire::ToWire(std::move(change), *response.add_changes());
  response.set_token(std::move(page->token));
  response.set_complete_until_ms(page->complete_until_ms);
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::SetConsumerRequest& request, v1::SetConsumerResponse&) {
  return store.SetConsumer(request.dataset(), request.name(), request.token());
}

absl::Status Handle(KVStore& store, const v1::ListConsumersRequest& request,
                    v1::ListConsumersResponse& response) {
  auto consumers = store.ListConsumers(request.dataset());
  if (!consumers.ok()) return consumers.status();
  for (ChangeConsumer& consumer : *consumers) {
    v1::Consumer& sent = *response.add_consumers();
    sent.set_name(std::move(consumer.name));
    sent.set_token(std::move(consumer.token));
    sent.set_set_ms(consumer.set_ms);
    sent.set_lag_ms(consumer.lag_ms);
  }
  return absl::OkStatus();
}

absl::Status Handle(KVStore& store, const v1::DropConsumerRequest& request, v1::DropConsumerResponse&) {
  return store.DropConsumer(request.dataset(), request.name());
}

}  // namespace kvstore::server
