#include "tests/chaos/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>
#include <utility>

#include "tests/chaos/operators.h"
#include "tests/support/eventually.h"

namespace kvstore::testing::chaos {
namespace {

using std::chrono::milliseconds;

/// The steps of a migration at which a server may be killed (docs/migrating.md).
constexpr std::array kFailPoints = {
    "takeover.recorded", "takeover.half",  "prepare.begin",     "prepare.named",   "prepare.target",
    "prepare.capture",   "backfill.read",  "backfill.replaced", "backfill.done",   "drain.listed",
    "drain.replaced",    "drain.removed",  "verify.pass",       "cutover.begin",   "cutover.armed",
    "cutover.drained",   "cutover.frozen", "cutover.empty",     "cutover.counted", "cutover.moved",
    "cutover.serving",   "cutover.routed", "cutover.recorded",  "finish.dropped",  "finish.plain",
    "finish.routed",     "abort.plain",    "abort.dropped",     "abort.routed",    "cutover.moved",
    "cutover.serving"};

}  // namespace

Faults::Faults(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings)
    : fleet_(fleet), tenants_(tenants), log_(log), settings_(settings), random_(settings.seed * 31 + 1000) {
  const auto add = [&](const char* name, uint64_t weight, void (Faults::*begin)()) {
    if (settings.Has(name)) kinds_.push_back({weight, begin});
  };
  add("kill_server", 3, &Faults::KillServer);
  add("stop_server", 1, &Faults::StopServer);
  add("pause_server", 2, &Faults::PauseServer);
  add("fail_point", 3, &Faults::FailPoint);
  add("kill_master", 2, &Faults::KillMaster);
  add("kill_slave", 1, &Faults::KillSlave);
  add("pause_master", 1, &Faults::PauseMaster);
  add("lose_second", 1, &Faults::LoseSecond);
  add("zookeeper", 1, &Faults::ZooKeeperAway);
}

void Faults::Run() {
  const auto end = Clock::now() + settings_.length;
  uint64_t weights = 0;
  for (const Kind& kind : kinds_) weights += kind.weight;
  Clock::time_point next = Clock::now() + RandomTime(500, 2000);
  while (Clock::now() < end) {
    UndoDue(Clock::now());
    for (size_t i = 0; i < Fleet::kServers; ++i) fleet_.Runs(i);
    if (!kinds_.empty() && active_.size() < 2 && Clock::now() >= next) {
      uint64_t choice = random_.Below(weights);
      size_t kind = 0;
      while (choice >= kinds_[kind].weight) choice -= kinds_[kind++].weight;
      (this->*kinds_[kind].begin)();
      next = Clock::now() + RandomTime(500, 3500);
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  log_.Say("faults", "the time is over: all faults are undone");
  UndoDue(Clock::time_point::max());
}

bool Faults::IsActive(const std::string& target) const {
  return std::any_of(active_.begin(), active_.end(), [&](const Active& one) { return one.target == target; });
}

std::optional<size_t> Faults::FreeServer() {
  const size_t server = random_.Below(Fleet::kServers);
  if (IsActive(Fleet::NameOf(server))) return std::nullopt;
  return server;
}

std::optional<shardops::Pair> Faults::FreePair() {
  const size_t wanted = random_.Below(Fleet::kPairs);
  const auto maps = IsActive("zookeeper") ? std::nullopt : fleet_.Maps();
  if (!maps || IsActive(fmt::format("pair{}", wanted))) return std::nullopt;
  for (const shardops::Pair& pair : maps->Pairs()) {
    if (fleet_.PairOf(pair.master) == wanted) return pair;
  }
  return std::nullopt;
}

milliseconds Faults::RandomTime(uint64_t least, uint64_t most) {
  return milliseconds(least + random_.Below(most - least));
}

void Faults::Begin(const std::string& target, const std::string& what, milliseconds time,
                   std::function<void()> undo) {
  log_.Say("faults", fmt::format("{} {}, for {} ms", target, what, time.count()));
  active_.push_back({Clock::now() + time, target, std::move(undo)});
}

void Faults::UndoDue(Clock::time_point now) {
  for (size_t i = 0; i < active_.size();) {
    if (active_[i].due > now) {
      ++i;
      continue;
    }
    const Active one = active_[i];
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    one.undo();
    log_.Say("faults", one.target + ": undone");
    i = 0;
  }
}

Outcome Faults::Repair(const std::vector<std::string>& command) {
  std::vector<std::string> all = fleet_.ByConfig(0);
  all.insert(all.end(), command.begin(), command.end());
  return Operate(log_, "faults", all);
}

// ---- servers ----

void Faults::KillServer() {
  const auto server = FreeServer();
  if (!server) return;
  fleet_.KillServer(*server);
  Begin(Fleet::NameOf(*server), "is killed", RandomTime(0, 4000),
        [this, server] { fleet_.StartServer(*server); });
}

void Faults::StopServer() {
  const auto server = FreeServer();
  if (!server) return;
  // A host that hangs for longer than the server drains would make it give up.
  fleet_.StopServer(*server, [this] { UndoDue(Clock::now()); });
  Begin(Fleet::NameOf(*server), "is stopped", RandomTime(0, 2000),
        [this, server] { fleet_.StartServer(*server); });
}

void Faults::PauseServer() {
  const auto server = FreeServer();
  if (!server) return;
  fleet_.Signal(*server, SIGSTOP);
  // Mostly longer than the timeout of the server's session.
  Begin(Fleet::NameOf(*server), "hangs", RandomTime(1500, 5000),
        [this, server] { fleet_.Signal(*server, SIGCONT); });
}

void Faults::FailPoint() {
  const auto server = FreeServer();
  if (!server) return;
  const std::string point = kFailPoints[random_.Below(kFailPoints.size())];
  fleet_.KillServer(*server);
  fleet_.StartServer(*server, point);
  Begin(Fleet::NameOf(*server), "dies at " + point, RandomTime(3000, 8000), [this, server] {
    fleet_.KillServer(*server);
    fleet_.StartServer(*server);
  });
}

// ---- hosts ----

void Faults::KillMaster() {
  const auto pair = FreePair();
  if (!pair) return;
  fleet_.ServerOf(pair->master).Kill();
  const bool promote = random_.OneIn(2);
  Begin(fmt::format("pair{}", fleet_.PairOf(pair->master)), "loses its master " + pair->master.ToString(),
        RandomTime(200, 5000), [this, pair, promote] {
          if (promote) Repair({"shards", "promote", pair->slave.ToString(), "--emergency"});
          fleet_.ServerOf(pair->master).Start();
          // The remaining steps are those that `kv shards status` proposes.
          const auto maps = fleet_.Maps();
          if (!maps) return;
          for (const shardops::Pair& now : maps->Pairs()) {
            if (now != *pair && now != shardops::Pair{pair->slave, pair->master}) continue;
            const Outcome outcome = Repair({"shards", "promote", now.master.ToString()});
            if (outcome.text.find("--discard") != std::string::npos) {
              Repair({"shards", "replace-slave", now.slave.ToString(), "--discard"});
            }
          }
        });
}

void Faults::KillSlave() {
  const auto pair = FreePair();
  if (!pair) return;
  fleet_.ServerOf(pair->slave).Kill();
  Begin(fmt::format("pair{}", fleet_.PairOf(pair->master)), "loses its slave " + pair->slave.ToString(),
        RandomTime(200, 4000), [this, pair] { fleet_.ServerOf(pair->slave).Start(); });
}

void Faults::PauseMaster() {
  const auto pair = FreePair();
  if (!pair) return;
  fleet_.ServerOf(pair->master).Pause();
  Begin(fmt::format("pair{}", fleet_.PairOf(pair->master)), "hangs at its master " + pair->master.ToString(),
        RandomTime(200, 4000), [this, pair] { fleet_.ServerOf(pair->master).Resume(); });
}

void Faults::LoseSecond() {
  const auto pair = FreePair();
  const auto maps = fleet_.Maps();
  if (!pair || !maps) return;
  MariaDbServer& master = fleet_.ServerOf(pair->master);
  MariaDbServer& slave = fleet_.ServerOf(pair->slave);
  // A slave that lacks more than the last moments must not be promoted: more would be lost than was
  // announced.
  if (!master.Run("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'").ends_with("\t1\n")) return;
  // The one that acknowledges may be the target of a move that has just been started again.
  if (!slave.Run("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'").ends_with("\tON\n")) return;
  log_.Say("faults", pair->slave.ToString() + " gets nothing more of its master, which answers all the same");
  const auto since = Clock::now();
  master.Run("SET GLOBAL rpl_semi_sync_master_enabled = OFF");
  slave.Run("STOP SLAVE IO_THREAD");
  std::this_thread::sleep_for(RandomTime(300, 1500));
  master.Kill();
  AnnounceLoss(*maps, *pair, since);
  // Shards may have moved to the pair meanwhile.
  if (const auto now = fleet_.Maps()) AnnounceLoss(*now, *pair, since);
  Begin(fmt::format("pair{}", fleet_.PairOf(pair->master)),
        "loses its master, and what that had not told its slave", RandomTime(0, 2000), [this, pair] {
          const Outcome promoted = Repair(
              {"shards", "promote", pair->slave.ToString(), "--emergency", "--accept-loss", "1000000"});
          fleet_.ServerOf(pair->master).Start();
          if (!promoted.ok()) return;
          const Outcome outcome = Repair({"shards", "promote", pair->slave.ToString()});
          if (outcome.text.find("--discard") != std::string::npos) {
            Repair({"shards", "replace-slave", pair->master.ToString(), "--discard"});
          }
        });
}

void Faults::AnnounceLoss(const shardops::Maps& maps, const shardops::Pair& pair, Clock::time_point since) {
  for (const auto& tenant : tenants_) {
    for (uint32_t key = 0; key < tenant->keys(); ++key) {
      const auto place = tenant->PlaceOf(key);
      if (!place || maps.PairOf(place->space, place->shard) != pair) continue;
      tenant->registers().MayHaveLost(key, since);
      if (auto* objects = dynamic_cast<ObjectsTenant*>(tenant.get())) objects->MayReuseId(key);
    }
  }
}

void Faults::ZooKeeperAway() {
  if (IsActive("zookeeper")) return;
  fleet_.zookeeper().Stop();
  Begin("zookeeper", "is away", RandomTime(500, 5000), [this] { fleet_.zookeeper().Start(); });
}

}  // namespace kvstore::testing::chaos
