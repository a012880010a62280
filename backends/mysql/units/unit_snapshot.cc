#include "backends/mysql/units/unit_snapshot.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/units/fleet_units.h"
#include "backends/mysql/units/host_snapshot.h"
#include "backends/mysql/units/lanes.h"

namespace kvstore::mysql {
namespace {

/// A dataset as it was when this was taken, on each host at its own moment. Thread-safe.
class MySqlUnitSnapshot : public UnitSnapshot {
 public:
  MySqlUnitSnapshot(std::shared_ptr<Fleet> fleet, const DatasetSpec& spec,
                    std::shared_ptr<const Dataset> dataset, std::chrono::seconds max_age)
      : fleet_(std::move(fleet)),
        spec_(spec),
        dataset_(std::move(dataset)),
        max_age_(max_age),
        shards_(ShardsOf(fleet_->map(space()))),
        units_(fleet_, kind(), *dataset_,
               {.shards = [this] { return shards_; },
                .read = [this](uint32_t shard, const ReadTable& work) { return ReadShard(shard, work); }}) {}

  /// Takes it on all hosts. To be called once, before anything else.
  absl::Status Take() {
    std::map<Host, size_t> places;  // in hosts_ and by_host
    std::vector<std::vector<uint32_t>> by_host;
    const ShardMap& map = fleet_->map(space());
    for (const uint32_t shard : shards_) {
      const ShardRange* const range = map.Find(shard);
      if (range == nullptr) return absl::UnavailableError("the shard map has just changed; try again");
      const auto [place, is_new] = places.emplace(range->master, hosts_.size());
      if (is_new) {
        hosts_.push_back(std::make_unique<HostSnapshot>(fleet_->PoolOf(range->master), spec_));
        by_host.emplace_back();
      }
      by_host[place->second].push_back(shard);
      by_shard_[shard] = hosts_[place->second].get();
    }
    std::vector<std::optional<uint32_t>> missing(hosts_.size());
    absl::Status prepared =
        OnHosts(by_host, [&](size_t i) { return hosts_[i]->Prepare(by_host[i], max_age_, missing[i]); });
    for (const auto& shard : missing) {
      // A read of the table says why it is missing, as clients are told it.
      if (!shard) continue;
      if (auto status = ReadNow(*shard); !status.ok()) return status;
    }
    if (!prepared.ok()) return prepared;
    expires_ = SnapshotEnd(max_age_);
    return OnHosts(by_host, [&](size_t i) { return hosts_[i]->Begin(); });
  }

  absl::StatusOr<std::vector<UnitRange>> Partitions(size_t) override {
    for (const uint32_t shard : shards_) {
      if (auto status = Check(shard); !status.ok()) return status;
    }
    return units_.Partitions();
  }
  absl::StatusOr<std::vector<Unit>> Read(std::span<const std::string> keys, uint64_t as_of) override {
    return units_.Read(keys, as_of);
  }
  absl::StatusOr<std::unique_ptr<UnitScan>> Scan(const UnitRange& range, uint64_t as_of) override {
    return units_.Scan(range, as_of);
  }

 private:
  ShardSpace space() const { return dataset_->family.space; }
  UnitKind kind() const { return {spec_.shape, spec_.type}; }

  /// Calls `work` for all hosts, in parallel. Returns the first host's failure, with its name.
  absl::Status OnHosts(const std::vector<std::vector<uint32_t>>& by_host,
                       const std::function<absl::Status(size_t)>& work) {
    std::vector<uint32_t> firsts;
    for (const auto& shards : by_host) firsts.push_back(shards.front());
    std::vector<absl::Status> statuses(by_host.size());
    fleet_->ForEach(space(), firsts, [&](size_t i) { statuses[i] = work(i); });
    for (size_t i = 0; i < statuses.size(); ++i) {
      if (!statuses[i].ok()) return Fleet::WithPlace({space()}, hosts_[i]->host(), statuses[i], false);
    }
    return absl::OkStatus();
  }

  /// Reads some of the table as it is now.
  absl::Status ReadNow(uint32_t shard) {
    return fleet_->Run(space(), shard, Repeat::kAlways, [&](Connection& connection) -> absl::Status {
      ListUnits(connection, dataset_->TableOn(shard), kind(), Visible(*dataset_, connection, 0), {}, {});
      return absl::OkStatus();
    });
  }

  /// OK until the snapshot has expired for this shard.
  absl::Status Check(uint32_t shard) {
    std::string why;
    const auto part = by_shard_.find(shard);
    if (part == by_shard_.end()) {
      return absl::InvalidArgumentError(fmt::format(
          "shard {} was not open when the snapshot was taken, which therefore has none of its units",
          DatabaseName(space(), shard)));
    }
    if (std::chrono::steady_clock::now() >= expires_) {
      why = fmt::format("its time of {} s is over", max_age_.count());
    } else if (const ShardRange* const range = fleet_->map(space()).Find(shard);
               range == nullptr || range->master != part->second->host()) {
      // The host may lack writes that the new master has, or have some that nobody else has.
      why = fmt::format("shard {} has another master than {}", DatabaseName(space(), shard),
                        part->second->host().ToString());
    }
    if (why.empty()) return absl::OkStatus();
    part->second->Expire(why);
    return SnapshotExpiredError(why);
  }

  absl::Status ReadShard(uint32_t shard, const ReadTable& work) {
    if (auto status = Check(shard); !status.ok()) return status;
    HostSnapshot& part = *by_shard_.at(shard);
    absl::Status status = part.Read(dataset_->TableOn(shard), work);
    if (status.ok()) return status;
    return Fleet::WithPlace({space(), shard}, part.host(), status, false);
  }

  const std::shared_ptr<Fleet> fleet_;
  const DatasetSpec spec_;
  const std::shared_ptr<const Dataset> dataset_;
  const std::chrono::seconds max_age_;
  const std::vector<uint32_t> shards_;
  std::chrono::steady_clock::time_point expires_;
  std::vector<std::unique_ptr<HostSnapshot>> hosts_;
  std::map<uint32_t, HostSnapshot*> by_shard_;
  const FleetUnits units_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnitSnapshot>> TakeSnapshot(std::shared_ptr<Fleet> fleet,
                                                           const DatasetSpec& spec,
                                                           std::shared_ptr<const Dataset> dataset,
                                                           std::chrono::seconds max_age) {
  auto snapshot = std::make_unique<MySqlUnitSnapshot>(std::move(fleet), spec, std::move(dataset), max_age);
  if (auto status = snapshot->Take(); !status.ok()) return status;
  return snapshot;
}

}  // namespace kvstore::mysql
