#include "tests/chaos/fleet.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "catalog/catalog_json.h"
#include "kvstore_api/connect.h"

namespace kvstore::testing::chaos {
namespace {

using Json = nlohmann::json;

constexpr const char* kRoot = "/kvstore";

void Write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

/// Returns a map that has the first half of the shards on the first pair, and the others on the second.
std::string Map(uint32_t shards, const ServerPair& first, const ServerPair& second) {
  const auto range = [](uint32_t from, uint32_t to, const ServerPair& pair) {
    return Json{
        {"range", {from, to}}, {"master", pair.host_a().ToString()}, {"slave", pair.host_b().ToString()}};
  };
  return Json{range(0, shards / 2 - 1, first), range(shards / 2, shards - 1, second)}.dump();
}

}  // namespace

Fleet::Fleet(Log& log, std::filesystem::path folder)
    : log_(log), folder_(std::move(folder)), zookeeper_({.servers = zookeeper_server_.address()}, nullptr) {
  for (size_t i = 0; i < kPairs; ++i) {
    pairs_.at(i) = std::make_unique<ServerPair>(
        static_cast<int>(i + 1), std::vector<std::string>{"--log-bin-trust-function-creators=1"});
  }
  for (const auto& [name, shards] : {std::pair("id", kFirstIdShards), std::pair("mod", kModShards)}) {
    const auto status =
        zookeeper_.Create(fmt::format("{}/shards/{}", kRoot, name), Map(shards, *pairs_[0], *pairs_[1]));
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }
  for (size_t i = 0; i < kOperators; ++i) WriteConfig(fmt::format("operator{}", i), "", "", true);
  const auto init = ByConfig(0);
  std::vector<std::string> command = init;
  command.insert(command.end(), {"shards", "init"});
  const Outcome made = RunBounded(command, std::chrono::minutes(2));
  if (!made.ok()) throw std::runtime_error("shards init: " + made.ToString());
  // The servers are started once to learn where they listen, and then again with each other's addresses.
  for (size_t i = 0; i < kServers; ++i) {
    WriteConfig(NameOf(i), i == 0 ? "embedded" : "", i == 2 ? "embedded" : "", false);
    servers_.at(i).process = std::make_unique<KvServer>(
        Script(i, ""), std::vector<std::string>{"--config", (dir_ / (NameOf(i) + ".json")).string()});
  }
  for (size_t i = 0; i < kServers; ++i) StopServer(i);
  WriteConfigs();
  // a and c are backends of each other, but need each other only when they are called.
  for (size_t i = 0; i < kServers; ++i) StartServer(i);
}

void Fleet::WriteConfigs() {
  const std::string& near = servers_[0].process->address();
  const std::string& far = servers_[2].process->address();
  WriteConfig("a", "embedded", far, false);
  WriteConfig("b", near, far, false);
  WriteConfig("c", near, "embedded", false);
  for (size_t i = 0; i < kOperators; ++i) WriteConfig(fmt::format("operator{}", i), near, far, true);
}

void Fleet::WriteConfig(const std::string& name, const std::string& near, const std::string& far,
                        bool operates) {
  Json mysql = {{"type", "mysql"}, {"user", "kvstore"}, {"password", "kvstore"}, {"purge_cells_per_s", 0}};
  mysql["breaker"] = {{"min_pause_ms", 100}, {"max_pause_ms", 500}};
  if (operates) {
    mysql["operator"] = {{"user", "root"}, {"password", ""}};
    mysql["replication"] = {{"user", "repl"}, {"password", "repl"}};
  }
  Json backends = {{"mysql", mysql}};
  const auto add = [&](const char* backend, const std::string& where) {
    if (where == "embedded") {
      backends[backend] = {{"type", "rocksdb"}};
    } else if (!where.empty()) {
      backends[backend] = {{"type", "remote"}, {"address", where}};
    }
  };
  add("near", near);
  add("far", far);
  const Json config = {
      {"data", name},
      {"zookeeper",
       {{"servers", zookeeper_server_.address()}, {"call_timeout_ms", 1000}, {"session_timeout_ms", 2000}}},
      {"default_backend", "mysql"},
      {"backends", backends}};
  Write(dir_ / (name + ".json"), config.dump(1));
}

std::string Fleet::Script(size_t server, const std::string& fail_point) const {
  const std::string name = NameOf(server);
  const std::filesystem::path script = dir_ / ("serve-" + name);
  Write(script, fmt::format("#!/bin/sh\n{}exec '{}' \"$@\" 2>>'{}'\n",
                            fail_point.empty() ? "" : "export KV_FAIL_POINT=" + fail_point + "\n", KV_PROGRAM,
                            (folder_ / (name + ".log")).string()));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  return script.string();
}

std::vector<std::string> Fleet::ByConfig(size_t operator_number) const {
  return {KV_PROGRAM, "--config", (dir_ / fmt::format("operator{}.json", operator_number)).string()};
}

std::vector<std::string> Fleet::ByServer(size_t server) const {
  return {KV_PROGRAM, "--timeout-ms", "30000", "--server", servers_.at(server).process->address()};
}

std::unique_ptr<KVStore> Fleet::Connect(size_t server) const {
  auto store = kvstore::Connect(servers_.at(server).process->address(), {.deadline_ms = 5'000});
  if (!store.ok()) throw std::runtime_error(store.status().ToString());
  return *std::move(store);
}

// ---- servers ----

bool Fleet::Runs(size_t number) {
  Server& server = servers_.at(number);
  if (server.down) return false;
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(server.process->process()), &info, WEXITED | WNOHANG | WNOWAIT);
  if (info.si_pid == 0) return true;
  server.down = true;
  const std::string how =
      fmt::format("{} {}", info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status);
  if (!server.fail_point.empty() && info.si_code != CLD_EXITED && info.si_status == SIGKILL) {
    log_.Say(NameOf(number), "died at " + server.fail_point);
  } else {
    log_.Fail(NameOf(number), "ended by itself: " + how);
  }
  return false;
}

void Fleet::KillServer(size_t number) {
  if (!Runs(number)) return;
  servers_.at(number).process->Kill();
  servers_.at(number).down = true;
}

void Fleet::StopServer(size_t number, const std::function<void()>& meanwhile) {
  if (!Runs(number)) return;
  const pid_t process = servers_.at(number).process->process();
  ::kill(process, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  siginfo_t info{};
  while (info.si_pid == 0) {
    ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT);
    if (std::chrono::steady_clock::now() > deadline) {
      log_.Fail(NameOf(number), "does not end after SIGTERM");
      ::kill(process, SIGKILL);
    }
    if (meanwhile) meanwhile();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const bool by_fail_point = !servers_.at(number).fail_point.empty();
  const bool good = info.si_code == CLD_EXITED && info.si_status == 0;
  if (!good && !by_fail_point) {
    log_.Fail(NameOf(number),
              fmt::format("SIGTERM: {} {}", info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status));
  }
  servers_.at(number).process->Kill();
  servers_.at(number).down = true;
}

void Fleet::StartServer(size_t number, const std::string& fail_point) {
  Server& server = servers_.at(number);
  if (Runs(number)) return;
  Script(number, fail_point);
  server.fail_point = fail_point;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (;;) {
    if (server.process->process() > 0) server.process->Kill();
    try {
      server.process->Start();
      server.down = false;
      return;
    } catch (const std::runtime_error& error) {
      // The server may reach the fail point already while it starts; it is started again without.
      if (!server.fail_point.empty()) Script(number, "");
      server.fail_point.clear();
      log_.Say(NameOf(number), std::string("does not start: ") + error.what());
      if (std::chrono::steady_clock::now() > deadline) {
        log_.Fail(NameOf(number), "does not start");
        server.down = true;
        return;
      }
    }
  }
}

void Fleet::Signal(size_t server, int signal) const {
  if (!servers_.at(server).down) ::kill(servers_.at(server).process->process(), signal);
}

// ---- hosts ----

std::optional<shardops::Maps> Fleet::Maps() {
  auto maps = shardops::Maps::Load(zookeeper_, kRoot);
  if (!maps.ok()) return std::nullopt;
  return *std::move(maps);
}

uint64_t Fleet::IncarnationOf(const std::string& dataset) {
  const auto node = zookeeper_.Get(fmt::format("{}/datasets/{}", kRoot, dataset), /*watch=*/false);
  if (!node.ok()) return 0;
  const auto entry = DecodeCatalogEntry(node->data);
  return entry.ok() && entry->state == DatasetState::kActive ? entry->spec.incarnation : 0;
}

MariaDbServer& Fleet::ServerOf(const Host& host) {
  ServerPair& pair = *pairs_.at(PairOf(host));
  return host == pair.host_a() ? pair.a() : pair.b();
}

size_t Fleet::PairOf(const Host& host) {
  for (size_t i = 0; i < kPairs; ++i) {
    if (pairs_.at(i)->host_a() == host || pairs_.at(i)->host_b() == host) return i;
  }
  throw std::runtime_error("the maps name an unknown host: " + host.ToString());
}

uint32_t Fleet::open_id_shards() const {
  const MutexLock lock(mutex_);
  return open_id_shards_;
}

void Fleet::SetOpenIdShards(uint32_t count) {
  const MutexLock lock(mutex_);
  open_id_shards_ = count;
}

}  // namespace kvstore::testing::chaos
