#include "backends/mysql/object_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "kvstore_api/json.h"

namespace kvstore::mysql {
namespace {

/// An object without a place of its own is tried on so many shards before its creation fails.
constexpr int kMaxPlaces = 8;
/// IDs of one statement.
constexpr size_t kMaxTogether = 256;
/// From here on the log says that a shard's local IDs come to their end.
constexpr uint64_t kAlarm = ObjectId::kMaxLocal / 10 * 8;

uint64_t RandomNumber() {
  static thread_local std::mt19937_64 random(std::random_device{}());
  return random();
}

uint64_t LocalOf(uint64_t id) { return id & ObjectId::kMaxLocal; }

absl::Status NoObject(uint64_t id) {
  return absl::NotFoundError(fmt::format("object_id: there is no object {}", id));
}

absl::StatusOr<Object> Visible(Object object, bool include_inactive) {
  if (!include_inactive && IsInactive(object.data)) {
    return absl::NotFoundError(fmt::format("object_id: object {} is deleted (\"active\": false)", object.id));
  }
  return object;
}

}  // namespace

absl::Status MySqlObjectStore::CheckOpen(std::string_view field, uint32_t shard) const {
  if (fleet_->map(Space::kId).Find(shard) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}: shard {} is not open", field, shard));
}

absl::StatusOr<uint32_t> MySqlObjectStore::ShardOf(std::string_view field, uint64_t id) const {
  const auto shard = static_cast<uint32_t>(id >> 46);
  if (auto status = CheckOpen(field, shard); !status.ok()) return status;
  return shard;
}

std::shared_ptr<const Spread> MySqlObjectStore::CurrentSpread() {
  const ShardMap& map = fleet_->map(Space::kId);
  const std::lock_guard lock(spread_mutex_);
  if (spread_map_ != &map) {
    spread_ = std::make_shared<const Spread>(map, fleet_->options().weights);
    spread_map_ = &map;
  }
  return spread_;
}

absl::StatusOr<uint64_t> MySqlObjectStore::CreateOn(uint32_t shard, std::string_view data) {
  return fleet_->Run(Space::kId, shard, Repeat::kIfNotCommitted, [&](Connection& connection) -> absl::StatusOr<uint64_t> {
    if (auto status = dataset_->CheckDurable(connection, false); !status.ok()) return status;
    const Table table = dataset_->On(shard);
    uint64_t local = 0;
    if (connection.traits().returning) {
      Rows created = connection.Prepare(Sql::kCreateObject, table).Bind(data).Query();
      created.Next();
      local = created.Uint(1);
    } else {
      // Together, so that it is not created again if the connection is lost between the two.
      Transaction transaction(connection, Transaction::Kind::kWrite);
      connection.Prepare(Sql::kCreateObject, table).Bind(data).Execute();
      {
        Rows created = connection.Prepare(Sql::kLastInsertId, table).Query();
        created.Next();
        local = created.Uint(1);
      }
      transaction.Commit();
    }
    if (local > ObjectId::kMaxLocal) {
      // No ID can name it.
      connection.Prepare(Sql::kEraseObject, table).Bind(local).Execute();
      return absl::ResourceExhaustedError(fmt::format("shard {}: all {} local IDs of type {} are used",
                                                      DatabaseName(Space::kId, shard), ObjectId::kMaxLocal,
                                                      dataset_->type));
    }
    if (local >= kAlarm && (local % 1'000'000 == 0 || !warned_.exchange(true))) {
      spdlog::warn("shard {}: {} of {} local IDs of dataset {} are used", DatabaseName(Space::kId, shard), local,
                   ObjectId::kMaxLocal, dataset_->family.name);
    }
    const auto id = ObjectId::Make(shard, dataset_->type, local);
    if (!id.ok()) return id.status();
    return id->value();
  });
}

absl::StatusOr<uint64_t> MySqlObjectStore::Create(std::string_view data, const CreateOptions& options) {
  if (options.near || options.shard) {
    if (options.near) {
      const auto shard = ShardOf("near", *options.near);
      if (!shard.ok()) return shard.status();
      return CreateOn(*shard, data);
    }
    if (auto status = CheckOpen("shard", *options.shard); !status.ok()) return status;
    return CreateOn(*options.shard, data);
  }
  const auto spread = CurrentSpread();
  if (spread->empty()) {
    return absl::FailedPreconditionError("weights: no open shard has a weight above 0; name a shard");
  }
  absl::Status status;
  for (int place = 0; place < kMaxPlaces; ++place) {
    const uint32_t shard = spread->Choose(RandomNumber());
    const ShardRange* range = fleet_->map(Space::kId).Find(shard);
    // Elsewhere, if that host is known to fail: it may have been there already if all others are.
    if (place + 1 < kMaxPlaces && range != nullptr && fleet_->PoolOf(range->master)->breaker().open()) continue;
    auto id = CreateOn(shard, data);
    if (id.ok() || !absl::IsResourceExhausted(id.status())) return id;
    status = id.status();
  }
  return status;
}

absl::StatusOr<Object> MySqlObjectStore::Get(uint64_t id, const ObjectReadOptions& options) {
  const auto shard = ShardOf("object_id", id);
  if (!shard.ok()) return shard.status();
  return fleet_->Run(Space::kId, *shard, Repeat::kAlways, [&](Connection& connection) -> absl::StatusOr<Object> {
    Rows rows = connection.Prepare(Sql::kGetObject, dataset_->On(*shard)).Bind(LocalOf(id)).Query();
    if (!rows.Next()) return NoObject(id);
    return Visible({id, rows.Bytes(1), rows.Uint(2)}, options.include_inactive);
  });
}

void MySqlObjectStore::GetOnShard(uint32_t shard, std::span<const uint64_t> ids, std::span<const size_t> places,
                                  const ObjectReadOptions& options, std::vector<absl::StatusOr<Object>>& results) {
  // Lists have sizes of powers of two, the last ID repeated, so that few statements are prepared.
  size_t size = 1;
  while (size < places.size()) size *= 2;
  const absl::Status status =
      fleet_->Run(Space::kId, shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
        Call call = connection.Prepare(Sql::kGetObjects, dataset_->On(shard), size);
        for (size_t i = 0; i < size; ++i) call.Bind(LocalOf(ids[places[std::min(i, places.size() - 1)]]));
        std::map<uint64_t, Object> found;
        for (Rows rows = call.Query(); rows.Next();) {
          found[rows.Uint(1)] = {0, rows.Bytes(2), rows.Uint(3)};
        }
        for (const size_t place : places) {
          const auto object = found.find(LocalOf(ids[place]));
          if (object == found.end()) {
            results[place] = NoObject(ids[place]);
          } else {
            results[place] =
                Visible({ids[place], object->second.data, object->second.timestamp}, options.include_inactive);
          }
        }
        return absl::OkStatus();
      });
  if (status.ok()) return;
  for (const size_t place : places) results[place] = status;
}

std::vector<absl::StatusOr<Object>> MySqlObjectStore::GetMany(std::span<const uint64_t> ids,
                                                              const ObjectReadOptions& options) {
  std::vector<absl::StatusOr<Object>> results(ids.size(), absl::UnknownError("not looked up"));
  std::map<uint32_t, std::vector<size_t>> by_shard;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto shard = ShardOf("object_id", ids[i]);
    if (shard.ok()) {
      by_shard[*shard].push_back(i);
    } else {
      results[i] = shard.status();
    }
  }
  std::vector<uint32_t> shards;
  std::vector<std::vector<size_t>> places;
  for (auto& [shard, mine] : by_shard) {
    for (size_t begin = 0; begin < mine.size(); begin += kMaxTogether) {
      const size_t end = std::min(begin + kMaxTogether, mine.size());
      shards.push_back(shard);
      places.emplace_back(mine.begin() + static_cast<ptrdiff_t>(begin), mine.begin() + static_cast<ptrdiff_t>(end));
    }
  }
  fleet_->ForEach(Space::kId, shards, [&](size_t i) { GetOnShard(shards[i], ids, places[i], options, results); });
  return results;
}

absl::StatusOr<Object> MySqlObjectStore::Update(uint64_t id, const ObjectTransform& transform,
                                                const UpdateOptions& options) {
  const auto shard = ShardOf("object_id", id);
  if (!shard.ok()) return shard.status();
  return fleet_->Run(Space::kId, *shard, Repeat::kIfNotCommitted, [&](Connection& connection) -> absl::StatusOr<Object> {
    if (auto status = dataset_->CheckDurable(connection, false); !status.ok()) return status;
    const Table table = dataset_->On(*shard);
    Transaction transaction(connection, Transaction::Kind::kWrite);
    Object object{.id = id};
    uint64_t now = 0;
    {
      Rows rows = connection.Prepare(Sql::kLockObject, table).Bind(LocalOf(id)).Query();
      if (!rows.Next()) return NoObject(id);
      object.data = rows.Bytes(1);
      object.timestamp = rows.Uint(2);
      now = rows.Uint(3);
    }
    auto visible = Visible(std::move(object), options.include_inactive);
    if (!visible.ok()) return visible;
    if (options.expected_timestamp && *options.expected_timestamp != visible->timestamp) {
      return absl::FailedPreconditionError(fmt::format("expected_timestamp: {} was expected, the object's timestamp is {}",
                                                       *options.expected_timestamp, visible->timestamp));
    }
    auto data = transform(visible->data);
    if (!data.ok()) return data.status();
    visible->data = *std::move(data);
    visible->timestamp = std::max(now, visible->timestamp + 1);
    connection.Prepare(Sql::kUpdateObject, table)
        .Bind(visible->data)
        .Bind(visible->timestamp)
        .Bind(LocalOf(id))
        .Execute();
    transaction.Commit();
    return visible;
  });
}

absl::Status MySqlObjectStore::Erase(uint64_t id) {
  const auto shard = ShardOf("object_id", id);
  if (!shard.ok()) return shard.status();
  return fleet_->Run(Space::kId, *shard, Repeat::kIfNotCommitted, [&](Connection& connection) -> absl::Status {
    if (auto status = dataset_->CheckDurable(connection, false); !status.ok()) return status;
    const uint64_t erased = connection.Prepare(Sql::kEraseObject, dataset_->On(*shard)).Bind(LocalOf(id)).Execute();
    return erased > 0 ? absl::OkStatus() : NoObject(id);
  });
}

}  // namespace kvstore::mysql
