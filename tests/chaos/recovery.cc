#include "tests/chaos/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/chaos/operators.h"

namespace kvstore::testing::chaos {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

/// Whether a command is one that can be given. A text may name a command without what it needs ("kv shards
/// release"), or one that is only for a process that hangs.
bool IsWhole(const Words& command) {
  const std::string& verb = command[1];
  if (verb == "release" || verb == "set") return false;
  if (verb == "move" && command.size() > 2 && command[2] == "status") return true;
  const bool needs_more = verb == "move" || verb == "open" || verb == "promote" || verb == "replace-slave";
  return !needs_more || command.size() > 3 || (command.size() > 2 && command[2].starts_with("127.0.0.1:"));
}

void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

}  // namespace

Outcome Recovery::RunCommand(const Words& command) {
  Words all = fleet_.ByConfig(0);
  all.insert(all.end(), command.begin(), command.end());
  return Operate(log_, "recovery", all);
}

std::vector<Words> Recovery::CommandsIn(const std::string& text) {
  std::vector<Words> commands;
  std::stringstream lines(text);
  constexpr std::string_view kBegin = "kv shards ";
  for (std::string line; std::getline(lines, line);) {
    // A line may name several commands.
    for (size_t at = line.find(kBegin); at != std::string::npos; at = line.find(kBegin, at + 1)) {
      Words words;
      std::stringstream rest(line.substr(at + 3));
      // The command ends before the first word that is no part of its name, no option, no range and no host.
      for (std::string word; rest >> word;) {
        const bool of_move = !words.empty() && words.back() == "move" &&
                             (word == "status" || word == "finish" || word == "cancel");
        const bool belongs = words.size() < 2 || of_move || word.starts_with("--") ||
                             word.starts_with("127.0.0.1:") || words.back() == "--range";
        if (!belongs) break;
        const bool ends = word.back() == ',' || word.back() == ')';
        while (!word.empty() && (word.back() == ',' || word.back() == ')')) word.pop_back();
        words.push_back(word);
        if (ends) break;
      }
      if (words.size() >= 2 && IsWhole(words) &&
          std::find(commands.begin(), commands.end(), words) == commands.end()) {
        commands.push_back(words);
      }
    }
  }
  return commands;
}

void Recovery::RunWithAdvice(const Words& command) {
  const std::string text = RunCommand(command).text;
  // The answer may name what is to be done next. A migration that stands in the way is to be ended first.
  for (const auto& tenant : tenants_) {
    if (text.find("kv migrate finish " + tenant->name() + " or") != std::string::npos) EndMigration(*tenant);
  }
  for (const Words& next : CommandsIn(text)) RunCommand(next);
}

bool Recovery::EndMoves() {
  const Outcome outcome = RunBounded(
      [&] {
        Words command = fleet_.ByConfig(0);
        for (const char* word : {"--json", "shards", "move", "status"}) command.emplace_back(word);
        return command;
      }(),
      bound_);
  const auto json = nlohmann::json::parse(outcome.text, nullptr, false);
  if (!outcome.ok() || !json.is_object()) {
    log_.Say("recovery", "move status: " + outcome.ToString());
    return false;
  }
  for (const auto& move : json["moves"]) {
    Words range = {"--range", fmt::format("{}-{}", move["range"][0].get<int>(), move["range"][1].get<int>())};
    if (move["space"] == "mod") range.insert(range.begin(), "--mod");
    const auto give = [&](const char* command) {
      Words words = {"shards", "move"};
      if (*command != '\0') words.emplace_back(command);
      words.insert(words.end(), range.begin(), range.end());
      if (*command == '\0') {
        words.emplace_back("--to");
        words.push_back(move["to"][0].get<std::string>() + "," + move["to"][1].get<std::string>());
        words.emplace_back("--hold-writes");
      }
      RunCommand(words);
    };
    if (move["state"] == "moved") {
      give("finish");
    } else {
      give(random_.OneIn(2) ? "" : "cancel");
    }
  }
  return json["moves"].empty();
}

void Recovery::WaitForSlaves(const std::string& text) {
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("acknowledges commits without its slave") == std::string::npos) continue;
    const auto host = Host::Parse(line.substr(0, line.find(": ")));
    if (!host.ok()) continue;
    log_.Say("recovery",
             host->ToString() + ": is told to wait for its slave again, as docs/runbook.md has it");
    fleet_.ServerOf(*host).Run(
        "SET GLOBAL rpl_semi_sync_master_enabled = ON, rpl_semi_sync_master_wait_no_slave = ON, "
        "rpl_semi_sync_master_timeout = 4000000");
  }
}

void Recovery::RepairFleet() {
  const auto deadline = Clock::now() + bound_;
  for (;;) {
    const Outcome status = RunCommand({"shards", "status"});
    const bool moved = EndMoves();
    if (status.ok() && moved) return;
    if (Clock::now() > deadline) {
      log_.Fail("recovery", "the hosts do not come in order: " + status.ToString());
      return;
    }
    // Only one of the proposed commands is run: after it, the others may have nothing left to repair.
    WaitForSlaves(status.text);
    const auto named = CommandsIn(status.text);
    if (!status.ok() && !named.empty()) RunWithAdvice(named[random_.Below(named.size())]);
    Pause();
  }
}

bool Recovery::EndMigration(const Tenant& tenant) {
  const size_t server = random_.Below(Fleet::kServers);
  const Outcome found = RunBounded(
      [&] {
        Words command = fleet_.ByServer(server);
        for (const std::string& word : {std::string("migrate"), std::string("status"), tenant.name()}) {
          command.push_back(word);
        }
        return command;
      }(),
      bound_);
  if (found.code == 1 && found.text.find("kv: NOT_FOUND") != std::string::npos) return true;
  MigrationState state = ReadMigration(fleet_, server, tenant.name());
  if (state.phase == "finished" || state.phase == "aborted") return true;
  // Picks one of the commands that lead to an end. If there is none, the migration is going on by itself.
  constexpr std::array kEnds = {"start", "cutover", "finish", "rollback", "cancel", "resume", "resolve"};
  Words ends;
  for (const std::string& one : state.next) {
    const bool is_end = std::find(kEnds.begin(), kEnds.end(), one) != kEnds.end();
    if (is_end && (one != "resume" || random_.OneIn(4))) ends.push_back(one);
  }
  if (ends.empty()) return false;
  const std::string& end = ends[random_.Below(ends.size())];
  AskServers(fleet_, random_, [&](Words command) {
    for (const std::string& word : {std::string("migrate"), end, tenant.name()}) command.push_back(word);
    if (end == "resolve") command.insert(command.end(), {"--keep", state.truth});
    return Operate(log_, "recovery", command);
  });
  return false;
}

void Recovery::EndMigrations() {
  const auto deadline = Clock::now() + bound_;
  std::vector<const Tenant*> left;
  for (const auto& tenant : tenants_) left.push_back(tenant.get());
  while (!left.empty() && Clock::now() < deadline) {
    std::erase_if(left, [&](const Tenant* tenant) { return EndMigration(*tenant); });
    Pause();
  }
  for (const Tenant* tenant : left) {
    Words command = fleet_.ByServer(0);
    for (const std::string& word : {std::string("migrate"), std::string("status"), tenant->name()}) {
      command.push_back(word);
    }
    log_.Fail("recovery", "the migration of " + tenant->name() +
                              " does not come to an end: " + RunBounded(command, bound_).ToString());
  }
}

bool Recovery::Within(const std::string& what, const std::function<absl::Status()>& attempt) {
  const auto deadline = Clock::now() + bound_;
  const auto begin = Clock::now();
  for (;;) {
    const absl::Status status = attempt();
    if (status.ok()) {
      const std::chrono::duration<double> took = Clock::now() - begin;
      log_.Say("recovery", fmt::format("{}: well, after {:.1f} s", what, took.count()));
      return true;
    }
    if (Clock::now() > deadline) {
      log_.Fail("recovery", what + ": " + status.ToString());
      return false;
    }
    Pause();
  }
}

void Recovery::UseAll() {
  for (const auto& tenant : tenants_) {
    for (size_t server = 0; server < Fleet::kServers; ++server) {
      const auto store = fleet_.Connect(server);
      const std::string what = fmt::format("{} through {}", tenant->name(), Fleet::NameOf(server));
      const bool used = Within(what, [&] {
        // A dataset that operators drop and create may be missing.
        if (tenant->churned() && absl::IsNotFound(store->GetDataset(tenant->name()).status())) {
          return absl::OkStatus();
        }
        if (auto status = tenant->ReadAll(*store); !status.ok()) return status;
        return tenant->WriteAll(*store);
      });
      if (!used) break;
      auto* const rows = dynamic_cast<RowsTenant*>(tenant.get());
      if (rows != nullptr && !tenant->churned()) {
        Within("settings of " + what, [&] { return rows->CheckSettings(*store); });
      }
    }
  }
}

void Recovery::CheckHosts() {
  const auto deadline = Clock::now() + bound_;
  for (;;) {
    const Outcome check = RunCommand({"shards", "check"});
    if (check.ok()) return;
    if (Clock::now() > deadline) {
      log_.Fail("recovery", "the hosts are not as the maps and the catalog say: " + check.ToString());
      return;
    }
    const auto named = CommandsIn(check.text);
    if (!named.empty()) RunWithAdvice(named[random_.Below(named.size())]);
    Pause();
  }
}

void Recovery::ReadAll() {
  for (const auto& tenant : tenants_) {
    for (size_t server = 0; server < Fleet::kServers; ++server) {
      const auto store = fleet_.Connect(server);
      const absl::Status status = tenant->ReadAll(*store);
      if (!status.ok() && !(tenant->churned() && absl::IsNotFound(status))) {
        log_.Fail("recovery", fmt::format("{} cannot be read through {}: {}", tenant->name(),
                                          Fleet::NameOf(server), status.ToString()));
      }
    }
  }
}

}  // namespace kvstore::testing::chaos
