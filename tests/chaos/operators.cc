#include "tests/chaos/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/support/random.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing::chaos {
namespace {

using std::chrono::milliseconds;
using Words = std::vector<std::string>;

/// A command that has not ended after this time hangs: none takes as long even on a slow machine.
constexpr std::chrono::minutes kDeadline(4);

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

}  // namespace

Outcome Operate(Log& log, const std::string& who, const Words& command, const Disturbance& disturbance) {
  const Outcome outcome = RunBounded(command, kDeadline, disturbance);
  std::string shown;
  for (const std::string& word : Words(command.begin() + 1, command.end())) {
    // The log has only the name of a configuration.
    const size_t slash = word.starts_with('/') ? word.rfind('/') + 1 : 0;
    shown += " " + word.substr(slash);
  }
  const std::string told = fmt::format("kv{} -> {}", shown, outcome.ToString());
  const bool crashed = outcome.signal != 0 && !outcome.killed;
  if (outcome.hung || crashed || outcome.code > 1) {
    log.Fail(who, told);
  } else {
    log.Say(who, told);
  }
  return outcome;
}

MigrationState ReadMigration(Fleet& fleet, size_t server, const std::string& dataset) {
  const Outcome outcome =
      RunBounded(fleet.ByServer(server) + Words{"--json", "migrate", "status", dataset}, kDeadline);
  const auto json = nlohmann::json::parse(outcome.text, nullptr, false);
  if (!outcome.ok() || !json.is_object()) return {};
  return {json.value("phase", ""), json.value("problem", ""), json.value("next", Words()),
          json.value("truth", "")};
}

Outcome AskServers(Fleet& fleet, Random& random, const std::function<Outcome(const Words& server)>& ask) {
  const size_t first = random.Below(Fleet::kServers);
  Outcome outcome;
  for (size_t i = 0; i < Fleet::kServers; ++i) {
    outcome = ask(fleet.ByServer((first + i) % Fleet::kServers));
    if (outcome.text.find("runs the migration of") == std::string::npos) break;
  }
  return outcome;
}

/// One operator.
class Operators::Operator {
 public:
  Operator(Operators& all, size_t number)
      : fleet_(all.fleet_),
        tenants_(all.tenants_),
        log_(all.log_),
        settings_(all.settings_),
        number_(number),
        who_(fmt::format("operator{}", number)),
        random_(all.settings_.seed * 31 + number) {
    const auto add = [&](const char* name, uint64_t weight, void (Operator::*action)()) {
      if (!settings_.Has(name)) return;
      for (uint64_t i = 0; i < weight; ++i) actions_.push_back(action);
    };
    add("migrate", 8, &Operator::Migrate);
    add("open", 2, &Operator::OpenShards);
    add("init", 1, &Operator::Init);
    add("create", 2, &Operator::Create);
    add("drop", 2, &Operator::Drop);
    add("alter", 2, &Operator::Alter);
    add("move", 2, &Operator::Move);
    add("promote", 1, &Operator::Promote);
    add("purge", 1, &Operator::Purge);
    add("compact", 1, &Operator::Compact);
    add("import", 1, &Operator::Import);
    add("weight", 1, &Operator::Weight);
  }

  void Run(const std::atomic<bool>& stop) {
    while (!stop && !actions_.empty()) {
      (this->*actions_[random_.Below(actions_.size())])();
      std::this_thread::sleep_for(milliseconds(random_.Below(400)));
    }
  }

 private:
  Words Config() const { return fleet_.ByConfig(number_); }
  Words Server() { return fleet_.ByServer(random_.Below(Fleet::kServers)); }
  /// Returns the beginning of a command that is given to a server, or carried out by its own process.
  Words Either() { return random_.OneIn(2) ? Config() : Server(); }
  Tenant& Any() { return *tenants_[random_.Below(tenants_.size())]; }
  Tenant* AnyChurned() {
    for (int i = 0; i < 20; ++i) {
      if (Tenant& tenant = Any(); tenant.churned()) return &tenant;
    }
    return nullptr;
  }
  std::string AnyBackend() {
    constexpr std::array kBackends = {"near", "far", "mysql", "mysql"};
    return kBackends[random_.Below(kBackends.size())];
  }
  /// one_in  One in so many commands is disturbed.
  Disturbance AnyDisturbance(uint64_t one_in) {
    Disturbance disturbance;
    // Most disturbances come soon after the command has begun.
    const auto at = milliseconds(50 + random_.Below(random_.OneIn(3) ? 1500 : 250));
    const bool kill = random_.OneIn(3);
    if (!random_.OneIn(one_in)) return disturbance;
    if (kill && settings_.Has("kill_command")) {
      disturbance.kill_after = at;
    } else if (settings_.Has("pause_command")) {
      // The pause is longer than the timeout of a session, so that others may take over what the command was
      // doing.
      disturbance.pause_after = at;
      disturbance.pause = milliseconds(2500 + random_.Below(3000));
    }
    return disturbance;
  }
  Outcome RunCommand(const Words& command, uint64_t disturbed_one_in = 6) {
    return Operate(log_, who_, command, AnyDisturbance(disturbed_one_in));
  }

  void Migrate() {
    const Tenant& tenant = Any();
    const MigrationState state = ReadMigration(fleet_, random_.Below(Fleet::kServers), tenant.name());
    if (state.next.empty()) {
      Words create = {"create", tenant.name(), "--to", AnyBackend(), "--share", "100"};
      if (random_.OneIn(4)) create.emplace_back("--auto");
      if (DoMigrate(create).ok() && !random_.OneIn(10)) DoMigrate({"start", tenant.name()});
      return;
    }
    // A command that is possible, and now and then one that is not.
    constexpr std::array kAll = {"start",  "cutover", "reverse", "rollback", "finish", "cancel",
                                 "resume", "pause",   "verify",  "throttle", "resume"};
    std::string command =
        random_.OneIn(6) ? kAll[random_.Below(kAll.size())] : state.next[random_.Below(state.next.size())];
    if (command == "watch") return;    // it would wait for the others
    if (command == "abandon") return;  // no side is gone for good here
    Words words = {command, tenant.name()};
    // The side that served stays the truth, so that what clients have read stays true. What that side has
    // lost was announced.
    if (command == "resolve") words = words + Words{"--keep", state.truth};
    if (command == "throttle") words = words + Words{"--share", std::to_string(1 + random_.Below(100))};
    DoMigrate(words);
    // A migration that was paused does not go on by itself.
    if (command == "pause") {
      std::this_thread::sleep_for(milliseconds(random_.Below(1000)));
      DoMigrate({"resume", tenant.name()});
    }
  }
  Outcome DoMigrate(const Words& words) {
    return AskServers(fleet_, random_,
                      [&](const Words& server) { return RunCommand(server + Words{"migrate"} + words); });
  }

  void OpenShards() {
    const auto maps = fleet_.Maps();
    if (!maps) return;
    const uint32_t first = fleet_.open_id_shards();
    // Only as many shards as the test has time for, since each one's tables are created.
    if (first >= Fleet::kFirstIdShards + 2 + 2 * settings_.length / std::chrono::seconds(30)) return;
    // Nor more than the mappings have keys for.
    if (first + 2 > MappingsTenant::kMaxShards) return;
    const auto pairs = maps->Pairs();
    const shardops::Pair& pair = pairs[random_.Below(pairs.size())];
    const Outcome outcome =
        RunCommand(Config() + Words{"shards", "open", "--range", fmt::format("{}-{}", first, first + 1),
                                    "--master", pair.master.ToString(), "--slave", pair.slave.ToString()});
    // Another operator may have opened the same shards first.
    if (outcome.ok()) fleet_.SetOpenIdShards(first + 2);
  }

  void Init() { RunCommand(Config() + Words{"shards", "init"}); }

  void Create() {
    Tenant* const tenant = AnyChurned();
    if (tenant == nullptr) return;
    const Outcome outcome =
        RunCommand(Either() + Words{"dataset", "create", tenant->name(), "--backend", AnyBackend()}, 2);
    // Whichever dataset has the name by now was created before this moment.
    if (const uint64_t now = outcome.ok() ? fleet_.IncarnationOf(tenant->name()) : 0; now != 0)
      tenant->Created(now);
  }

  void Drop() {
    Tenant* const tenant = AnyChurned();
    if (tenant == nullptr) return;
    const auto drop = tenant->BeginDrop();
    const Outcome outcome = RunCommand(Either() + Words{"dataset", "drop", tenant->name(), "--yes"}, 2);
    const bool refused =
        outcome.code == 1 && (outcome.text.find("kv: FAILED_PRECONDITION") != std::string::npos ||
                              outcome.text.find("kv: NOT_FOUND") != std::string::npos);
    tenant->EndDrop(drop,
                    outcome.ok() ? Tenant::Drop::kDone
                    : refused    ? Tenant::Drop::kRefused
                                 : Tenant::Drop::kUnknown,
                    fleet_.IncarnationOf(tenant->name()));
  }
  void Alter() {
    const Tenant& tenant = Any();
    if (tenant.spec().shape != Shape::kRows) return;
    RunCommand(Either() + Words{"dataset", "alter", tenant.name(), "--max-versions",
                                std::to_string(1 + random_.Below(5))});
  }

  void Move() {
    const auto maps = fleet_.Maps();
    if (!maps) return;
    const ShardSpace space = random_.OneIn(2) ? ShardSpace::kMod : ShardSpace::kId;
    const auto first =
        static_cast<uint32_t>(2 * random_.Below(space == ShardSpace::kMod ? Fleet::kModShards / 2 : 2));
    Words range = {"--range", fmt::format("{}-{}", first, first + 1)};
    if (space == ShardSpace::kMod) range.insert(range.begin(), "--mod");
    const Words move = Config() + Words{"shards", "move"};
    const uint64_t choice = random_.Below(4);
    if (choice == 0) {
      RunCommand(move + Words{"finish"} + range);
    } else if (choice == 1) {
      RunCommand(move + Words{"cancel"} + range);
    } else {
      const auto home = maps->PairOf(space, first);
      for (const shardops::Pair& pair : maps->Pairs()) {
        if (!home || pair == *home) continue;
        RunCommand(move + range +
                   Words{"--to", pair.master.ToString() + "," + pair.slave.ToString(), "--hold-writes"});
        break;
      }
    }
  }

  void Promote() {
    const auto maps = fleet_.Maps();
    if (!maps) return;
    const auto pairs = maps->Pairs();
    RunCommand(Config() + Words{"shards", "promote", pairs[random_.Below(pairs.size())].slave.ToString()});
  }

  void Purge() { RunCommand(Config() + Words{"purge", Any().name()}); }
  void Compact() { RunCommand(Server() + Words{"compact", Any().name()}); }

  void Weight() {
    const auto shard = random_.Below(fleet_.open_id_shards());
    RunCommand(Config() + Words{"shards", "weight", "--range", fmt::format("{}-{}", shard, shard),
                                std::to_string(random_.Below(3) + (shard == 0 ? 1 : 0))});
  }

  void Import() {
    Tenant& tenant = Any();
    if (tenant.spec().shape != Shape::kRows) return;
    const TempDir dir;
    const std::string file = (dir / "lines").string();
    std::vector<Registers::Pending> pending;
    {
      std::ofstream out(file);
      for (uint32_t i = 0; i < RowsTenant::kImported; ++i) {
        const uint32_t key = RowsTenant::kRows * RowsTenant::kColumns + i;
        pending.push_back(tenant.registers().BeginWrite(key));
        const nlohmann::json line = {
            {"row", RowsTenant::RowOf(key)},
            {"items",
             {{{"column", RowsTenant::ColumnOf(key)}, {"value", std::to_string(pending.back().value)}}}}};
        out << line.dump() << "\n";
      }
    }
    const Outcome outcome = RunCommand(Server() + Words{"--json", "import", tenant.name(), file});
    if (!outcome.ok() || outcome.text.find(R"("rejected":0)") == std::string::npos) return;
    for (const Registers::Pending& one : pending) tenant.registers().Succeed(one);
  }

  Fleet& fleet_;
  Tenants& tenants_;
  Log& log_;
  const Settings& settings_;
  const size_t number_;
  const std::string who_;
  Random random_;
  std::vector<void (Operator::*)()> actions_;
};

Operators::Operators(Fleet& fleet, Tenants& tenants, Log& log, const Settings& settings)
    : fleet_(fleet), tenants_(tenants), log_(log), settings_(settings) {
  for (size_t i = 0; i < kThreads; ++i) {
    // The first configuration is used by the recovery after the disturbance.
    threads_.emplace_back([this, i] { Operator(*this, i + 1).Run(stop_); });
  }
}

void Operators::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace kvstore::testing::chaos
