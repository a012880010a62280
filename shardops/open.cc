#include "shardops/open.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "backends/mysql/driver/schema.h"
#include "backends/mysql/fleet/shard_tables.h"
#include "base/fail_point.h"
#include "shardops/gtid.h"
#include "shardops/map_check.h"
#include "shardops/map_history.h"
#include "shardops/move_record.h"
#include "shardops/replication_gap.h"
#include "shardops/status.h"

namespace kvstore::shardops {
namespace {

using Clock = std::chrono::steady_clock;

/// How long the slave may take to apply the new databases and tables.
constexpr std::chrono::minutes kMaxApplyTime{5};
/// How long one statement waits for that: below the read timeout of the connection.
constexpr std::chrono::seconds kPart{5};
/// By this time after the map was changed all processes use it, and create the tables of new datasets on the
/// new shards too.
constexpr std::chrono::seconds kSeen{2};

/// Returns the map with the new shards, or why they cannot be opened. ALREADY_EXISTS if they are open on that
/// pair.
absl::StatusOr<ShardMap> WithShards(const ShardMap& map, const NewShards& shards) {
  const ShardRange wanted{shards.first, shards.last, shards.pair.master, shards.pair.slave};
  std::vector<ShardRange> ranges;
  bool placed = false;
  for (const ShardRange& range : map.ranges()) {
    if (range == wanted) {
      return absl::AlreadyExistsError(fmt::format("shards {}-{} are open there", shards.first, shards.last));
    }
    if (range.first <= shards.last && shards.first <= range.last) {
      return absl::FailedPreconditionError(
          fmt::format("range: {}-{} has shards of {}-{}, which are open at {}: name others (kv shards get "
                      "shows the map), or kv shards move to have them elsewhere",
                      shards.first, shards.last, range.first, range.last, range.master.ToString()));
    }
    if (!placed && shards.last < range.first) {
      ranges.push_back(wanted);
      placed = true;
    }
    ranges.push_back(range);
  }
  if (!placed) ranges.push_back(wanted);
  return ShardMap::Create(std::move(ranges));
}

uint32_t ModShards(const Maps& maps) {
  const StoredMap* const stored = maps.Find(ShardSpace::kMod);
  return stored == nullptr ? 0 : stored->map.open_shards();
}

/// Claims the shards exclusively: meanwhile no dataset on ID shards migrates, or is created, altered or
/// dropped.
absl::StatusOr<Held> BeginOperation(FleetOperator& fleet, const NewShards& shards) {
  return fleet.ledger->Begin(
      {.what = fmt::format("open shards db {}-{}", shards.first, shards.last),
       .claims = {Claim::Shards(ShardSpace::kId, shards.first, shards.last, ClaimMode::kExclusive),
                  Claim::Host(shards.pair.master.ToString(), ClaimMode::kShared),
                  Claim::Host(shards.pair.slave.ToString(), ClaimMode::kShared)}});
}

/// Leaves out the datasets whose tables are made when a call needs them. Fails if a table on the new shards
/// has the name of one of them, and is another dataset's.
absl::Status LeaveOutMadeOnFirstUse(FleetOperator& fleet, const NewShards& shards, HostAdmin& master,
                                    std::vector<DatasetSpec>& datasets) {
  std::vector<DatasetSpec> others;
  for (DatasetSpec& spec : datasets) {
    const auto record = fleet.Tables().Find(spec, shards.first);
    if (!record.ok()) return record.status();
    if (!record->has_value()) {
      others.push_back(std::move(spec));
      continue;
    }
    if (mysql::SpaceOf(spec.shape) != ShardSpace::kId) continue;
    absl::Status free = master.WithConnection([&](mysql::Connection& connection) {
      return mysql::CheckNameIsFree(connection, spec, shards.first, shards.last);
    });
    if (!free.ok()) return free;
  }
  datasets = std::move(others);
  return absl::OkStatus();
}

/// Creates the databases and tables that are missing on the master, and waits until the slave has them.
absl::Status CreateShards(FleetOperator& fleet, const NewShards& shards, uint32_t mod_shards,
                          const ReadDatasets& read, const Progress& progress) {
  auto datasets = read();
  if (!datasets.ok()) return datasets.status();
  const auto master = HostAdmin::Open(shards.pair.master, fleet.access);
  if (!master.ok()) return master.status();
  if (auto status = LeaveOutMadeOnFirstUse(fleet, shards, **master, *datasets); !status.ok()) return status;
  const uint64_t total = shards.last - shards.first + 1;
  for (uint32_t shard = shards.first; shard <= shards.last; ++shard) {
    if (auto status = (*master)->MakeShard(shard, mod_shards, *datasets, read); !status.ok()) return status;
    if (progress && !progress(shard - shards.first + 1, total))
      return absl::CancelledError("was stopped: run the command again to go on");
  }
  const auto state = (*master)->Read();
  if (!state.ok()) return state.status();
  const auto slave = HostAdmin::Open(shards.pair.slave, fleet.access);
  if (!slave.ok()) return slave.status();
  const auto begin = Clock::now();
  ReplicationGap gap;
  for (;;) {
    // Waits in parts, because a statement that waits for long would run into the connection's read timeout.
    absl::Status status = (*slave)->AwaitGtid(state->gtid, kPart);
    if (!absl::IsDeadlineExceeded(status)) return status;
    const auto there = (*slave)->Read();
    if (!there.ok()) return there.status();
    // A slave that was promoted meanwhile has everything but applies nothing any more, so that AwaitGtid
    // would wait in vain.
    if (CountMissing(state->gtid, there->gtid) == 0) return absl::OkStatus();
    const absl::Status replicates = CheckReplicates(shards.pair.slave, *there, shards.pair.master);
    const auto now = Clock::now();
    // A slave that was promoted without what its master had will never have it.
    if (gap.IsTooLong(replicates, now)) {
      return absl::UnavailableError(fmt::format(
          "{}\n{}\nkv shards status says how to mend that; then run the command again, with the pair as "
          "the map has it by then (kv shards get)",
          std::string(status.message()), std::string(replicates.message())));
    }
    if (now - begin >= kMaxApplyTime) return status;
  }
}

}  // namespace

std::vector<std::string> FindPairProblems(FleetOperator& fleet, const Pair& pair) {
  std::vector<std::string> found;
  for (const bool master : {true, false}) {
    const HostReport report = InspectHost(fleet, pair, master);
    for (const std::string& problem : report.problems)
      found.push_back(report.host.ToString() + ": " + problem);
  }
  return found;
}

absl::StatusOr<Opened> OpenShards(FleetOperator& fleet, const NewShards& shards, const ReadDatasets& datasets,
                                  const Progress& progress) {
  if (auto status = CheckRange({.space = ShardSpace::kId, .first = shards.first, .last = shards.last});
      !status.ok())
    return status;
  const auto held = BeginOperation(fleet, shards);
  if (!held.ok()) return held.status();
  const auto maps = Maps::Load(fleet.zookeeper, fleet.root);
  if (!maps.ok()) return maps.status();
  PrepareHistory(fleet.zookeeper, fleet.root).IgnoreError();
  const StoredMap* const ids = maps->Find(ShardSpace::kId);
  if (ids == nullptr)
    return absl::FailedPreconditionError("there is no map of ID shards: kv shards set makes one");
  // A wrong range is refused before anything is created.
  auto next = WithShards(ids->map, shards);
  if (absl::IsAlreadyExists(next.status())) {
    if (auto status = CreateShards(fleet, shards, ModShards(*maps), datasets, progress); !status.ok())
      return status;
    return Opened{.already = true};
  }
  if (!next.ok()) return next.status();
  if (const auto problems = FindPairProblems(fleet, shards.pair); !problems.empty()) {
    return absl::FailedPreconditionError(fmt::format("{}", fmt::join(problems, "\n")));
  }
  if (const auto elsewhere = FindElsewhere(fleet, *maps, *next); !elsewhere.empty()) {
    return absl::FailedPreconditionError(fmt::format("{}", fmt::join(elsewhere, "\n")));
  }
  if (auto status = CreateShards(fleet, shards, ModShards(*maps), datasets, progress); !status.ok())
    return status;
  Reached("open.made");
  // Somebody may have changed the map while the shards were created.
  const auto now = Maps::Load(fleet.zookeeper, fleet.root);
  if (!now.ok()) return now.status();
  const StoredMap* const current = now->Find(ShardSpace::kId);
  if (current == nullptr)
    return absl::FailedPreconditionError("the map of ID shards is gone: kv shards set makes one");
  next = WithShards(current->map, shards);
  if (!next.ok()) return next.status();
  if (auto status = now->Set(*fleet.ledger, *held, ShardSpace::kId, *next); !status.ok()) return status;
  fleet.report(
      fmt::format("shards {}-{} are open on {}", shards.first, shards.last, shards.pair.master.ToString()));
  Reached("open.published");
  // A process that still had the old map may have created a dataset meanwhile, without tables on the new
  // shards.
  std::this_thread::sleep_for(kSeen);
  if (auto status = CreateShards(fleet, shards, ModShards(*now), datasets, nullptr); !status.ok())
    return status;
  return Opened{};
}

}  // namespace kvstore::shardops
