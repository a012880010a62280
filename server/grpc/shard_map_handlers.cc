#include <utility>

#include "server/call/served_parts.h"
#include "server/grpc/special_handlers.h"

/// The service Shards.
namespace kvstore::server {
namespace {

ShardSpace SpaceOf(v1::ShardSpace space) {
  return space == v1::MOD_SHARDS ? ShardSpace::kMod : ShardSpace::kId;
}

}  // namespace

absl::Status HandleAny(Core& core, const Principal*, const v1::GetShardMapRequest& request,
                       v1::GetShardMapResponse& response, Unfinished&) {
  const auto maps = ShardMapsOf(core);
  if (!maps.ok()) return maps.status();
  auto map = (*maps)->GetShardMap(SpaceOf(request.space()));
  if (map.ok()) response.set_map(*std::move(map));
  return map.status();
}

absl::Status HandleAny(Core& core, const Principal*, const v1::ListShardMapsRequest& request,
                       v1::ListShardMapsResponse& response, Unfinished&) {
  const auto maps = ShardMapsOf(core);
  if (!maps.ok()) return maps.status();
  auto history = (*maps)->ListShardMaps(SpaceOf(request.space()));
  if (!history.ok()) return history.status();
  for (ShardMaps::Kept& kept : *history) {
    v1::ListShardMapsResponse::Kept& told = *response.add_maps();
    told.set_name(std::move(kept.name));
    told.set_at_ms(kept.at_ms);
    told.set_who(std::move(kept.who));
    if (kept.map) told.set_map(*std::move(kept.map));
  }
  return absl::OkStatus();
}

}  // namespace kvstore::server
