#include "fleet_backup/host_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "kvstore_api/call_scope.h"

namespace kvstore::fleet_backup {
namespace {

/// How often the maps are read: who the slave is changes rarely.
constexpr std::chrono::seconds kRoleInterval{15};
/// How often the newest backup is looked for, which another process may have made.
constexpr std::chrono::minutes kChainInterval{10};

}  // namespace

HostFollower::HostFollower(shardops::FleetOperator& fleet, const ZooKeeperOptions& shared, Host host,
                           BlobOpener open, FollowOptions options)
    : fleet_(fleet),
      host_(std::move(host)),
      open_(std::move(open)),
      options_(std::move(options)),
      started_ms_(WallClockMs()),
      nodes_(shared, fleet.root),
      thread_([this] { Run(); }) {}

HostFollower::~HostFollower() {
  Stop();
  thread_.join();
}

void HostFollower::Stop() {
  std::shared_ptr<backup::Schedule> schedule;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    schedule = schedule_;
  }
  if (schedule != nullptr) schedule->Stop();
  stopped_.notify_all();
}

HostFollower::Figures HostFollower::figures() const {
  const MutexLock lock(mutex_);
  Figures figures = figures_;
  if (schedule_ != nullptr) figures.backups = schedule_->figures().backups;
  return figures;
}

void HostFollower::Describe(MetricsSink& sink) const {
  const Figures figures = this->figures();
  sink.Gauge("kvstore_backup_host_is_slave",
             "1 if the host is the slave of its pair, so that the pair's backups are made here", {},
             figures.is_slave ? 1 : 0);
  if (!figures.is_slave && figures.last_error.ok()) return;
  std::shared_ptr<backup::Schedule> schedule;
  {
    const MutexLock lock(mutex_);
    schedule = schedule_;
  }
  if (schedule != nullptr) schedule->Describe(sink);
  const uint64_t now = WallClockMs();
  const uint64_t until = figures.sent_until_ms == 0 ? started_ms_ : figures.sent_until_ms;
  sink.Gauge(
      "kvstore_backup_log_age_seconds",
      "Time since when commits may not have been sent to the backups: what a loss of both hosts of the "
      "pair would lose",
      {}, static_cast<double>(now - std::min(now, until)) / 1000);
  sink.Gauge("kvstore_backup_log_failing", "1 if the last attempt to send the binary log has failed", {},
             figures.last_error.ok() ? 0 : 1);
  sink.Counter("kvstore_backup_log_failures_total", "Attempts to send the binary log that have failed", {},
               static_cast<double>(figures.failures));
  sink.Counter("kvstore_backup_log_segments_total", "Segments of the binary log that were sent", {},
               static_cast<double>(figures.log.segments));
  sink.Counter("kvstore_backup_log_sent_bytes_total", "Bytes of segments that were sent", {},
               static_cast<double>(figures.log.sent_bytes));
}

bool HostFollower::Sleep(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (lock.WaitUntil(stopped_, until)) break;
  }
  return !stopping_;
}

void HostFollower::Run() {
  const CallScope scope(CallLimits{.cancelled = &stopping_});
  uint64_t wait_ms = 0;
  while (Sleep(std::chrono::milliseconds(wait_ms))) {
    const absl::Status status = Round();
    if (!status.ok() && !stopping_) Failed(status);
    wait_ms = status.ok() ? options_.ship_ms : options_.retry_ms;
  }
  End();
}

absl::Status HostFollower::Round() {
  absl::Status role;
  if (!pair_ || Clock::now() - role_known_at_ > kRoleInterval) role = UpdateRole();
  // The pair that was found last stays in use while ZooKeeper does not answer.
  absl::Status status = shipper_ != nullptr ? Ship() : absl::OkStatus();
  if (status.ok()) status = role;
  const MutexLock lock(mutex_);
  if (status.ok()) figures_.last_error = absl::OkStatus();
  return status;
}

absl::Status HostFollower::UpdateRole() {
  auto pair = FindPair(fleet_, host_);
  if (!pair.ok()) return pair.status();
  role_known_at_ = Clock::now();
  const bool is_slave = pair->hosts.slave == host_;
  const bool is_same = pair_ && pair_->hosts == pair->hosts && pair_->domain == pair->domain;
  if (is_same) {
    pair_->shards = pair->shards;
    return absl::OkStatus();
  }
  End();
  pair_.reset();
  if (is_slave) {
    auto blobs = OpenPairBackups(open_, pair->domain);
    if (!blobs.ok()) return blobs.status();
    Begin(*pair, *std::move(blobs));
    Say(false, fmt::format("{} is the slave of {}: its backups are made here", host_.ToString(),
                           pair->hosts.master.ToString()));
  } else {
    Say(false,
        fmt::format(
            "{} is the master of its pair, whose backups are made at {}; waiting until it is the slave",
            host_.ToString(), pair->hosts.slave.ToString()));
  }
  pair_ = *std::move(pair);
  const MutexLock lock(mutex_);
  figures_.is_slave = is_slave;
  return absl::OkStatus();
}

void HostFollower::Begin(const BackedUpPair& pair, std::unique_ptr<BlobStore> blobs) {
  blobs_ = std::move(blobs);
  shipper_ = std::make_unique<BinlogShipper>(
      *blobs_, fleet_.access,
      BinlogShipper::Options{.domain = pair.domain, .nodes = [this] { return nodes_.Text(); }});
  known_backups_ = 0;
  if (options_.every_ms == 0) return;
  auto schedule = std::make_shared<backup::Schedule>(
      [this](BlobStore& to, const Progress& progress) -> absl::StatusOr<backup::Manifest> {
        // Its shards may be others by now.
        const auto now = FindPair(fleet_, host_);
        if (!now.ok()) return now.status();
        const auto all = open_();
        if (!all.ok()) return all.status();
        if (auto status = AddPair(**all, now->domain); !status.ok()) return status;
        return CreateHostBackup(fleet_, *now, to,
                                {.bytes_per_s = options_.bytes_per_s, .progress = progress});
      },
      [this, domain = pair.domain] { return OpenPairBackups(open_, domain); },
      backup::ScheduleOptions{.every_ms = options_.every_ms, .keep = options_.keep, .log = options_.log});
  const MutexLock lock(mutex_);
  schedule_ = std::move(schedule);
}

void HostFollower::End() {
  std::shared_ptr<backup::Schedule> schedule;
  {
    const MutexLock lock(mutex_);
    schedule = std::move(schedule_);
    schedule_.reset();
    figures_.sent_until_ms = 0;
  }
  schedule.reset();  // waits for a backup that is being made, which it cancels
  shipper_.reset();
  blobs_.reset();
}

absl::Status HostFollower::Ship() {
  const uint64_t backups = schedule_ != nullptr ? schedule_->figures().backups : 0;
  if (backups != known_backups_ || Clock::now() - chain_known_at_ > kChainInterval) {
    known_backups_ = backups;
    chain_known_at_ = Clock::now();
    shipper_->Forget();
  }
  const uint64_t now = WallClockMs();
  absl::Status shipped = shipper_->Ship(host_);
  // The first backup is being made.
  if (absl::IsNotFound(shipped) && schedule_ != nullptr) return absl::OkStatus();
  if (absl::IsOutOfRange(shipped)) {
    Say(true,
        fmt::format(
            "the binary log that follows the backups has a gap here: {}; the times until the end of "
            "the next backup cannot be restored{}",
            std::string(shipped.message()),
            schedule_ != nullptr ? "; that is made now" : ": make it with kv backup create --host HOST"));
    shipper_->Forget();
    if (schedule_ == nullptr) return shipped;
    return schedule_->MakeNow(*blobs_, nullptr, backup::Schedule::WhenBusy::kWait).status();
  }
  if (!shipped.ok()) return shipped;
  // All that the slave has was sent. It may still lack what its master has, if it does not replicate.
  const auto slave = shardops::HostAdmin::Open(host_, fleet_.access);
  if (!slave.ok()) return slave.status();
  const auto state = (*slave)->Read();
  if (!state.ok()) return state.status();
  absl::Status replicates = shardops::CheckReplicates(host_, *state, pair_->hosts.master);
  const MutexLock lock(mutex_);
  figures_.log = shipper_->figures();
  if (replicates.ok()) figures_.sent_until_ms = now;
  return replicates;
}

void HostFollower::Failed(const absl::Status& status) {
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    ++figures_.failures;
    // The same error again and again is one line.
    is_new = figures_.last_error != status;
    figures_.last_error = status;
  }
  if (is_new) {
    Say(true, fmt::format("the binary log cannot be sent to the backups: {}; it is tried again",
                          status.ToString()));
  }
}

}  // namespace kvstore::fleet_backup
