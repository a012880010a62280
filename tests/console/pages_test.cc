#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "client/reports.h"
#include "kvstore_api/connect.h"
#include "server/call/access.h"
#include "tests/shardops/move_fixture.h"
#include "tests/support/kv_server.h"
#include "tests/support/loopback.h"
#include "tests/support/processes.h"

/// The console in a real browser: pages.py goes through all pages and actions, on a server with a fleet of
/// two pairs of MySQL servers and an embedded store.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class ConsolePages : public MoveTest {
 protected:
  ConsolePages() {
    // docs/mysql.md asks this of servers to which datasets migrate.
    for (MariaDbServer* server : {&first_.a(), &first_.b(), &second_.a(), &second_.b()})
      server->Run("SET GLOBAL log_bin_trust_function_creators = ON");
    WriteTokens(/*ops=*/true);
    first_.WriteConfig(dir_ / "kv.json");
    Json config = Json::parse(std::ifstream(dir_ / "kv.json"));
    config["backends"]["rocksdb"] = {{"type", "rocksdb"}};
    config["default_backend"] = "rocksdb";
    config["backup"] = {{"to", "file:" + (dir_ / "backups").string()}, {"every", "1d"}, {"log", true}};
    config["server"] = {{"tokens", (dir_ / "tokens.json").string()},
                        {"http_api", fmt::format("127.0.0.1:{}", http_port_)},
                        {"limits", {{"drain_ms", 1000}}}};
    std::ofstream(dir_ / "kv.json") << config;
    server_ = std::make_unique<KvServer>(KV_PROGRAM,
                                         std::vector<std::string>{"--config", (dir_ / "kv.json").string()});
  }

  void WriteTokens(bool ops) const {
    const auto entry = [](const std::string& name, const Json& rights) {
      return Json{{"name", name}, {"sha256", server::TokenDigest("token-" + name)}, {"rights", rights}};
    };
    Json tokens = {entry("web", {{"events", "read"}})};
    if (ops) tokens.push_back(entry("ops", {{"*", "admin"}}));
    std::ofstream(dir_ / "next.json") << Json{{"tokens", tokens}};
    std::filesystem::rename(dir_ / "next.json", dir_ / "tokens.json");
  }

  /// Fills the datasets; returns what pages.py has to know.
  Json Load() const {
    const auto store = *Connect(server_->address(), {.token = "token-ops"});
    EXPECT_OK(store->CreateDataset({.name = "events", .max_versions = 0}));
    EXPECT_OK(store->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
    EXPECT_OK(store->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
    for (int i = 0; i < 120; ++i) {
      const std::string value = fmt::format("pin:{}", i);
      const std::vector<CellWrite> cells = {{"click", value, 1'700'000'000'000},
                                            {"click", "older", 1'600'000'000'000}};
      EXPECT_OK(store->PutRow("events", fmt::format("user:{}", i), cells, {}).status());
    }
    EXPECT_OK(store->CreateDataset({.name = "followed", .keep_changes_ms = 3'600'000}));
    EXPECT_OK(store->SetConsumer("followed", "search", kChangesFromBegin));
    const uint64_t pin = *store->CreateObject("pins", R"({"title": "chair"})", {});
    EXPECT_OK(store->AddMapping("boards", pin, pin, 1));
    EXPECT_OK(store->CreateDataset({.name = "reports", .max_versions = 0}));
    const auto reports = client::OpenReports(*store, "reports");
    const reports::ReportInfo report{
        .name = "visits", .keys = {{"country", "?"}}, .metrics = {{.name = "views"}}};
    EXPECT_OK(reports->Create(report));
    reports::Batch batch(*reports->Info("visits", {"views"}));
    const uint64_t begin = 1'767'225'600'000;  // 2026-01-01
    for (uint64_t hour = 0; hour < 7 * 24; ++hour) {
      for (const char* country : {"DE", "FR", "JP"}) {
        EXPECT_OK(batch.Add(0, begin + hour * 3'600'000,
                            std::vector<std::optional<std::string_view>>{country},
                            reports::Number::Integer(static_cast<int64_t>(hour % 24 + country[0]))));
      }
    }
    EXPECT_OK(reports->Write(batch, {}).status());
    return {{"url", fmt::format("http://127.0.0.1:{}/", http_port_)},
            {"board", std::to_string(pin)},
            {"master", first_.host_a().ToString()},
            {"slave", first_.host_b().ToString()},
            {"other_pair", second_.host_a().ToString() + "," + second_.host_b().ToString()}};
  }

  void Do(const std::string& name) {
    if (name == "stop-zookeeper") first_.zookeeper().Stop();
    if (name == "start-zookeeper") first_.zookeeper().Start();
    if (name == "stop-server") server_->Kill();
    if (name == "start-server") server_->Start();
    if (name == "forget-ops") WriteTokens(/*ops=*/false);
  }

  const uint16_t http_port_ = FreePort();
  std::unique_ptr<KvServer> server_;
};

TEST_F(ConsolePages, AllOfThem) {
  if (RunProgram({"sh", "-c", "command -v chromium chromedriver && /usr/bin/python3 -c 'import selenium'"})
          .code != 0)
    GTEST_SKIP() << "there is no Chromium with its driver, or no Selenium for Python: ./dev installs them";
  std::ofstream(dir_ / "setup.json") << Load();
  const std::string log = (dir_ / "pages.log").string();
  const pid_t pages =
      ForkProgram({"/usr/bin/python3", KV_SOURCE_DIR "/tests/console/pages.py", dir_.path().string()}, log);
  while (!Ended(pages)) {
    for (const char* name :
         {"stop-zookeeper", "start-zookeeper", "stop-server", "start-server", "forget-ops"}) {
      if (!std::filesystem::exists(dir_ / (std::string("do-") + name))) continue;
      std::filesystem::remove(dir_ / (std::string("do-") + name));
      Do(name);
      std::ofstream(dir_ / (std::string("done-") + name)) << "";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  std::ostringstream told;
  told << std::ifstream(log).rdbuf();
  std::string result;
  std::ifstream(dir_ / "result") >> result;
  EXPECT_EQ(result, "passed") << told.str();
  const char* const keep = std::getenv("KV_CONSOLE_SHOTS");
  if (result != "passed" && keep != nullptr && std::filesystem::exists(dir_ / "failed.png")) {
    std::filesystem::copy_file(dir_ / "failed.png", std::filesystem::path(keep) / "failed.png",
                               std::filesystem::copy_options::overwrite_existing);
  }
}

}  // namespace
}  // namespace kvstore::testing
