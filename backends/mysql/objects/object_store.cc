#include "backends/mysql/objects/object_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "backend_api/batch_bytes.h"
#include "backend_api/scan_budget.h"
#include "backends/mysql/objects/open_shards.h"
#include "base/hash.h"
#include "base/random_number.h"
#include "json/json.h"

namespace kvstore::mysql {
namespace {

/// How many shards are tried before the creation of an object fails that names no shard.
constexpr int kMaxPlaces = 8;
/// How often a create passes over a shard because its host is known to fail. Passing over costs nothing, and
/// so the number is large enough that chance alone does not make a create fail while half of the hosts
/// answer.
constexpr int kMaxPassedOver = 64;
/// How many IDs one statement reads on one shard.
constexpr size_t kMaxTogether = 256;
/// So many neighbouring shards are read by one statement, if at most kMaxTogetherInBlock IDs of each are
/// wanted.
constexpr uint32_t kBlockShards = 8;
constexpr size_t kMaxTogetherInBlock = 32;
/// How many objects a statement of a scan lists at most. It lists documents of up to kInlineValueBytes.
constexpr uint64_t kMaxListedObjects = 256;
/// From this local ID on the log warns that the shard runs out of local IDs.
constexpr uint64_t kAlarm = ObjectId::kMaxLocal / 10 * 8;

uint64_t LocalOf(uint64_t id) { return id & ObjectId::kMaxLocal; }

/// Returns the local ID at which the IDs from `bound` on begin, among those that follow `base`; after all of
/// them if none is left.
uint64_t LocalBound(uint64_t base, uint64_t bound) {
  return bound <= base ? 0 : std::min(bound - base, ObjectId::kMaxLocal + 1);
}

absl::Status NoObjectError(uint64_t id) {
  return absl::NotFoundError(fmt::format("object_id: there is no object {}", id));
}

absl::Status NotOpenError(std::string_view field, uint32_t shard) {
  return absl::InvalidArgumentError(
      fmt::format("{}: shard {} is not open; kv shards get shows which shards are", field, shard));
}

/// Returns the object, or NOT_FOUND if it is softly deleted and the call does not ask for such objects.
absl::StatusOr<Object> Visible(Object object, bool include_inactive) {
  if (!include_inactive && IsInactive(object.data)) return InactiveObjectError(object.id);
  return object;
}

}  // namespace

absl::Status MySqlObjectStore::CheckOpen(std::string_view field, uint32_t shard) const {
  if (fleet_->map(ShardSpace::kId).Find(shard) != nullptr) return absl::OkStatus();
  return NotOpenError(field, shard);
}

absl::StatusOr<uint32_t> MySqlObjectStore::ShardOf(std::string_view field, uint64_t id) const {
  const uint32_t shard = ObjectId::ShardOf(id);
  if (auto status = CheckOpen(field, shard); !status.ok()) return status;
  return shard;
}

absl::StatusOr<uint64_t> MySqlObjectStore::Insert(Connection& connection, uint32_t shard,
                                                  std::string_view data, std::string_view request_id) {
  const Table table = dataset_->TableOn(shard);
  const Sql sql = request_id.empty() ? Sql::kCreateObject : Sql::kCreateObjectOnce;
  const auto bound = [&]() -> Call {
    Call call = connection.Prepare(sql, table);
    call.Bind(data);
    if (!request_id.empty()) call.Bind(request_id);
    return call;
  };
  uint64_t local = 0;
  if (connection.traits().returning) {
    Rows created = bound().Query();
    created.Next();
    local = created.Uint(1);
  } else {
    // Both statements are one transaction, so that a retry creates no second object if the connection is lost
    // between the two.
    Transaction transaction(connection, Transaction::Kind::kWrite);
    bound().Execute();
    {
      Rows created = connection.Prepare(Sql::kLastInsertId, table).Query();
      created.Next();
      local = created.Uint(1);
    }
    transaction.Commit();
  }
  if (local > ObjectId::kMaxLocal) {
    // No ID can name this object.
    connection.Prepare(Sql::kEraseObject, table).Bind(local).Execute();
    return absl::ResourceExhaustedError(
        fmt::format("shard {}: all {} local IDs of type {} are used; create on another shard, or give this "
                    "one the weight 0 (kv shards weight)",
                    DatabaseName(ShardSpace::kId, shard), ObjectId::kMaxLocal, dataset_->type));
  }
  if (local >= kAlarm && (local % 1'000'000 == 0 || !warned_.exchange(true))) {
    spdlog::warn("shard {}: {} of {} local IDs of dataset {} are used", DatabaseName(ShardSpace::kId, shard),
                 local, ObjectId::kMaxLocal, dataset_->family.name);
  }
  return local;
}

absl::StatusOr<uint64_t> MySqlObjectStore::CreateOn(uint32_t shard, std::string_view data,
                                                    std::string_view request_id) {
  // The request_id is stored with the object under a unique key: a retried create finds what it has made.
  return fleet_->Run(
      ShardSpace::kId, shard, request_id.empty() ? Repeat::kIfNotCommitted : Repeat::kAlways,
      [&](Connection& connection) -> absl::StatusOr<uint64_t> {
        if (auto status = dataset_->CheckDurable(connection, false); !status.ok()) return status;
        absl::StatusOr<uint64_t> local;
        try {
          local = Insert(connection, shard, data, request_id);
        } catch (const sql::SQLException& error) {
          if (request_id.empty() || !IsDuplicate(error)) throw;
          // An attempt before has made it.
          Rows made =
              connection.Prepare(Sql::kFindRequest, dataset_->TableOn(shard)).Bind(request_id).Query();
          if (!made.Next()) throw;
          local = made.Uint(1);
        }
        if (!local.ok()) return local.status();
        const auto id = ObjectId::Make(shard, dataset_->type, *local);
        if (!id.ok()) return id.status();
        return id->value();
      });
}

absl::StatusOr<std::optional<uint64_t>> MySqlObjectStore::FindCreated(uint32_t shard,
                                                                      std::string_view request_id) {
  return fleet_->Run(
      ShardSpace::kId, shard, Repeat::kAlways,
      [&](Connection& connection) -> absl::StatusOr<std::optional<uint64_t>> {
        Rows made = connection.Prepare(Sql::kFindRequest, dataset_->TableOn(shard)).Bind(request_id).Query();
        if (!made.Next()) return std::nullopt;
        const auto id = ObjectId::Make(shard, dataset_->type, made.Uint(1));
        if (!id.ok()) return id.status();
        return id->value();
      });
}

absl::StatusOr<uint64_t> MySqlObjectStore::CreateOnce(const Spread& spread, std::string_view data,
                                                      const CreateOptions& options) {
  const uint64_t number = Fnv1a(options.request_id);
  // If this is a retry, shards may have been opened or weights set since the first attempt. A shard that does
  // not answer may have the object, so its error is returned; a shard that the map has no more can have
  // nothing that could be read.
  if (!options.first_attempt) {
    for (const uint32_t shard : fleet_->spreads().EarlierShards(number)) {
      if (fleet_->map(ShardSpace::kId).Find(shard) == nullptr) continue;
      const auto made = FindCreated(shard, options.request_id);
      if (!made.ok()) return made.status();
      if (*made) return **made;
    }
  }
  return CreateOn(spread.Choose(number), data, options.request_id);
}

absl::StatusOr<uint64_t> MySqlObjectStore::Create(std::string_view data, const CreateOptions& options) {
  if (options.near || options.shard) {
    if (options.near) {
      const auto shard = ShardOf("near", *options.near);
      if (!shard.ok()) return shard.status();
      return CreateOn(*shard, data, options.request_id);
    }
    if (auto status = CheckOpen("shard", *options.shard); !status.ok()) return status;
    return CreateOn(*options.shard, data, options.request_id);
  }
  const auto spread = fleet_->spreads().current();
  if (spread->empty()) {
    return absl::FailedPreconditionError(
        "shard: is not given, and no open shard has a weight above 0: name a shard, or change the weights "
        "(kv shards weight)");
  }
  if (!options.request_id.empty()) return CreateOnce(*spread, data, options);
  absl::Status status;
  int passed_over = 0;
  for (int place = 0; place < kMaxPlaces;) {
    const uint32_t shard = spread->Choose(RandomNumber());
    const ShardRange* range = fleet_->map(ShardSpace::kId).Find(shard);
    // Another shard is chosen if this one's host is known to fail. After kMaxPassedOver of them, perhaps all
    // hosts fail, and the create tries them all the same.
    if (passed_over < kMaxPassedOver && range != nullptr && fleet_->PoolOf(range->master).breaker().open()) {
      ++passed_over;
      continue;
    }
    ++place;
    auto id = CreateOn(shard, data, "");
    const bool elsewhere = absl::IsResourceExhausted(id.status()) || absl::IsUnavailable(id.status());
    if (!elsewhere || IsInDoubt(id.status())) return id;
    status = id.status();
  }
  return status;
}

absl::StatusOr<Object> MySqlObjectStore::Get(uint64_t id, const ObjectReadOptions& options) {
  const auto shard = ShardOf("object_id", id);
  if (!shard.ok()) return shard.status();
  return fleet_->Run(
      ShardSpace::kId, *shard, Repeat::kAlways, [&](Connection& connection) -> absl::StatusOr<Object> {
        Rows rows = connection.Prepare(Sql::kGetObject, dataset_->TableOn(*shard)).Bind(LocalOf(id)).Query();
        if (!rows.Next()) return NoObjectError(id);
        return Visible({id, rows.Bytes(1), rows.Uint(2)}, options.include_inactive);
      });
}

std::vector<MySqlObjectStore::Group> MySqlObjectStore::GroupByShards(
    std::span<const uint64_t> ids, std::vector<absl::StatusOr<Object>>& results) const {
  const ShardMap& map = fleet_->map(ShardSpace::kId);
  // Blocks of neighbouring shards, cut where the host changes; in each block, the places by shard.
  std::map<uint32_t, std::map<uint32_t, std::vector<size_t>>> blocks;
  for (size_t i = 0; i < ids.size(); ++i) {
    // All are looked up in one map: another may be in force at any moment.
    const uint32_t shard = ObjectId::ShardOf(ids[i]);
    if (const ShardRange* range = map.Find(shard)) {
      blocks[std::max(shard / kBlockShards * kBlockShards, range->first)][shard].push_back(i);
    } else {
      results[i] = NotOpenError("object_id", shard);
    }
  }
  std::vector<Group> groups;
  for (auto& [first, shards] : blocks) {
    const auto most = std::max_element(shards.begin(), shards.end(), [](const auto& a, const auto& b) {
                        return a.second.size() < b.second.size();
                      })->second.size();
    if (shards.size() > 1 && most <= kMaxTogetherInBlock) {
      const uint32_t end = std::min((first / kBlockShards + 1) * kBlockShards, map.Find(first)->last + 1);
      Group group{.first_shard = first, .shards = end - first};
      for (const auto& [shard, places] : shards)
        group.places.insert(group.places.end(), places.begin(), places.end());
      groups.push_back(std::move(group));
      continue;
    }
    for (const auto& [shard, places] : shards) {
      for (size_t begin = 0; begin < places.size(); begin += kMaxTogether) {
        const auto from = places.begin() + static_cast<ptrdiff_t>(begin);
        const auto to = from + static_cast<ptrdiff_t>(std::min(kMaxTogether, places.size() - begin));
        groups.push_back({.first_shard = shard, .places = {from, to}});
      }
    }
  }
  return groups;
}

void MySqlObjectStore::GetGroup(const Group& group, std::span<const uint64_t> ids,
                                const ObjectReadOptions& options, BatchBytes& bytes,
                                std::vector<absl::StatusOr<Object>>& results) {
  std::vector<std::vector<uint64_t>> locals(group.shards);
  for (const size_t place : group.places) {
    locals[ObjectId::ShardOf(ids[place]) - group.first_shard].push_back(LocalOf(ids[place]));
  }
  // The sizes of lists are powers of two, filled up with an ID that no object has, so that few statements are
  // prepared.
  size_t size = 1;
  for (const auto& list : locals) {
    while (size < list.size()) size *= 2;
  }
  const absl::Status status = fleet_->Run(
      ShardSpace::kId, group.first_shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
        Call call = connection.Prepare(Sql::kGetObjects, dataset_->TableOn(group.first_shard),
                                       ShardIds(group.shards, size));
        for (const auto& list : locals) {
          for (size_t i = 0; i < size; ++i) call.Bind(i < list.size() ? list[i] : 0);
        }
        struct Found {
          std::string data;
          uint64_t timestamp = 0;
          size_t places = 0;  // that ask for it and have no result yet
          bool kept = true;   // false: there was no room for the data
        };
        size_t room = bytes.left();
        std::unordered_map<uint64_t, Found> found;  // by ID
        for (Rows rows = call.Query(); rows.Next();) {
          const auto shard = static_cast<uint32_t>(rows.Uint(1));
          const uint64_t id = ObjectId::ValueOf(shard, dataset_->type, rows.Uint(2));
          Found& object = found[id];
          object.kept = room > 0 || id == ids.front();
          if (!object.kept) continue;
          object.data = rows.Bytes(3);
          object.timestamp = rows.Uint(4);
          room -= std::min(room, object.data.size());
        }
        for (const size_t place : group.places) {
          if (const auto object = found.find(ids[place]); object != found.end()) ++object->second.places;
        }
        for (const size_t place : group.places) {
          const auto object = found.find(ids[place]);
          if (object == found.end()) {
            results[place] = NoObjectError(ids[place]);
            continue;
          }
          // An ID may be asked for more than once: the last place gets the document itself, others a copy.
          auto& [data, timestamp, places, kept] = object->second;
          if (!kept || (bytes.full() && place != 0)) {
            results[place] = BatchFullError();
            continue;
          }
          bytes.Add(data.size());
          results[place] = Visible({ids[place], --places == 0 ? std::move(data) : data, timestamp},
                                   options.include_inactive);
        }
        return absl::OkStatus();
      });
  if (status.ok()) return;
  for (const size_t place : group.places) {
    // IDs of several shards are read one by one: the map may have parted the shards meanwhile, or one of them
    // lacks the table. If the host fails this costs little, since its breaker is open by now; and each error
    // names its shard.
    if (group.shards == 1) {
      results[place] = status;
    } else if (bytes.full() && place != 0) {
      results[place] = BatchFullError();
    } else {
      results[place] = Get(ids[place], options);
      if (results[place].ok()) bytes.Add(results[place]->data.size());
    }
  }
}

std::vector<absl::StatusOr<Object>> MySqlObjectStore::GetMany(std::span<const uint64_t> ids,
                                                              const ObjectReadOptions& options) {
  std::vector<absl::StatusOr<Object>> results(ids.size(), absl::UnknownError("not looked up"));
  const std::vector<Group> groups = GroupByShards(ids, results);
  std::vector<uint32_t> shards;
  for (const Group& group : groups) shards.push_back(group.first_shard);
  BatchBytes bytes;
  fleet_->ForEach(ShardSpace::kId, shards,
                  [&](size_t i) { GetGroup(groups[i], ids, options, bytes, results); });
  return results;
}

absl::StatusOr<Object> MySqlObjectStore::Update(uint64_t id, const ObjectTransform& transform,
                                                const UpdateOptions& options) {
  const auto shard = ShardOf("object_id", id);
  if (!shard.ok()) return shard.status();
  return fleet_->Run(ShardSpace::kId, *shard, Repeat::kIfNotCommitted,
                     [&](Connection& connection) -> absl::StatusOr<Object> {
                       if (auto status = dataset_->CheckDurable(connection, false); !status.ok())
                         return status;
                       const Table table = dataset_->TableOn(*shard);
                       Transaction transaction(connection, Transaction::Kind::kWrite);
                       Object object{.id = id};
                       uint64_t now = 0;
                       {
                         Rows rows = connection.Prepare(Sql::kLockObject, table).Bind(LocalOf(id)).Query();
                         if (!rows.Next()) return NoObjectError(id);
                         object.data = rows.Bytes(1);
                         object.timestamp = rows.Uint(2);
                         now = rows.Uint(3);
                       }
                       auto visible = Visible(std::move(object), options.include_inactive);
                       if (!visible.ok()) return visible;
                       if (options.expected_timestamp && *options.expected_timestamp != visible->timestamp) {
                         return absl::FailedPreconditionError(
                             fmt::format("expected_timestamp: {} was expected, the object's timestamp is {}",
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
  return fleet_->Run(
      ShardSpace::kId, *shard, Repeat::kIfNotCommitted, [&](Connection& connection) -> absl::Status {
        if (auto status = dataset_->CheckDurable(connection, false); !status.ok()) return status;
        const uint64_t erased =
            connection.Prepare(Sql::kEraseObject, dataset_->TableOn(*shard)).Bind(LocalOf(id)).Execute();
        return erased > 0 ? absl::OkStatus() : NoObjectError(id);
      });
}

// ---- scans ----

absl::StatusOr<std::vector<MySqlObjectStore::Listed>> MySqlObjectStore::List(uint32_t shard, uint64_t first,
                                                                             uint64_t end, uint64_t limit) {
  return fleet_->Run(ShardSpace::kId, shard, Repeat::kAlways,
                     [&](Connection& connection) -> absl::StatusOr<std::vector<Listed>> {
                       std::vector<Listed> listed;
                       for (Rows rows = connection.Prepare(Sql::kScanObjects, dataset_->TableOn(shard))
                                            .Bind(first)
                                            .Bind(end)
                                            .Bind(limit)
                                            .Query();
                            rows.Next();) {
                         Listed& one = listed.emplace_back();
                         one.local = rows.Uint(1);
                         one.timestamp = rows.Uint(2);
                         one.bytes = rows.Uint(3);
                         if (!rows.IsNull(4)) one.data = rows.Bytes(4);
                       }
                       return listed;
                     });
}

absl::StatusOr<ObjectScanPage> MySqlObjectStore::Scan(const IdRange& range,
                                                      const ObjectScanOptions& options) {
  ObjectScanPage page;
  uint64_t bytes = 0;
  const uint32_t last = ObjectId::ShardOf(range.end - 1);
  for (auto shard = FirstOpenShard(*fleet_, ObjectId::ShardOf(range.start), last); shard;
       shard = FirstOpenShard(*fleet_, *shard + 1, last)) {
    const uint64_t base = ObjectId::ValueOf(*shard, dataset_->type, 0);
    const uint64_t end = LocalBound(base, range.end);
    for (uint64_t local = LocalBound(base, range.start); local < end;) {
      page.next = base + local;
      // A page that has examined as much as it may ends, once it has got further than its beginning.
      const bool paused = IsScanBudgetSpent() && *page.next > range.start;
      if (paused || page.objects.size() == options.limit) return page;
      const uint64_t wanted = std::min<uint64_t>(kMaxListedObjects, options.limit - page.objects.size());
      auto listed = List(*shard, local, end, wanted);
      if (!listed.ok()) return listed.status();
      SpendScanBudget(kExaminedByStatement);
      local = listed->size() < wanted ? end : listed->back().local + 1;
      for (Listed& one : *listed) {
        page.next = base + one.local;
        const auto fits = [&](uint64_t more) {
          return page.objects.empty() || bytes + more <= options.max_bytes;
        };
        if (!fits(one.bytes)) return page;
        Object object{.id = base + one.local, .data = {}, .timestamp = one.timestamp};
        if (one.data) {
          object.data = *std::move(one.data);
        } else {
          // It may have been changed since it was listed.
          auto read = Get(object.id, {.include_inactive = true});
          if (absl::IsNotFound(read.status())) continue;
          if (!read.ok()) return read.status();
          object = *std::move(read);
          if (!fits(object.data.size())) return page;
        }
        if (!options.include_inactive && IsInactive(object.data)) continue;
        bytes += object.data.size();
        page.objects.push_back(std::move(object));
      }
    }
  }
  page.next.reset();
  return page;
}

absl::StatusOr<std::vector<Partition>> MySqlObjectStore::Partitions(size_t wanted) {
  return PartitionShards(*fleet_, wanted);
}

}  // namespace kvstore::mysql
