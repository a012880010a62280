#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"

/// kv backup, by hand and by a server.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

class KvBackup : public KvProgram {
 protected:
  void SetUp() override {
    Ok({"dataset", "create", "events"});
    Ok({"put", "events", "user:7", "click=pin:3", "view=pin:9"});
  }

  std::string Url() const { return "file:" + (dir_ / "backups").string(); }
  /// Runs kv without a store.
  Output Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), KV_PROGRAM);
    return RunProgram(arguments);
  }
  Json RunJson(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const Output output = Run(std::move(arguments));
    EXPECT_EQ(output.code, 0) << output.err;
    return Json::parse(output.out, nullptr, false);
  }
  std::string Scan(const fs::path& store) const {
    const Output output = Run({"--data", store.string(), "scan", "events", "--all"});
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }
};

TEST_F(KvBackup, FromCreateToPrune) {
  const std::string rows = Ok({"scan", "events", "--all"});
  EXPECT_THAT(Ok({"backup", "create", "--to", Url()}), HasSubstr(" files; sent "));
  const Json list = RunJson({"backup", "list", "--from", Url()});
  ASSERT_EQ(list["backups"].size(), 1u);
  const std::string id = list["backups"][0]["id"];
  EXPECT_GT(list["backups"][0]["bytes"].get<uint64_t>(), 0u);
  EXPECT_THAT(Run({"backup", "list", "--from", Url()}).out, HasSubstr(id));

  const Json shown = RunJson({"backup", "show", "--from", Url(), "--backup", id});
  EXPECT_EQ(shown["backup"]["id"], id);
  EXPECT_GE(shown["backup"]["files"].size(), 5u);
  EXPECT_THAT(Run({"backup", "show", "--from", Url()}).out, HasSubstr("rocksdb/CURRENT"));

  EXPECT_THAT(Run({"backup", "verify", "--from", Url(), "--quick"}).out, HasSubstr("none was read"));
  EXPECT_THAT(Run({"backup", "verify", "--from", Url()}).out, HasSubstr("1 datasets; use --deep"));
  EXPECT_EQ(RunJson({"backup", "verify", "--from", Url(), "--deep"})["datasets"], Json::array({"events"}));

  const fs::path restored = dir_ / "restored";
  EXPECT_THAT(Run({"backup", "restore", "--from", Url(), "--to", restored.string()}).out,
              HasSubstr("is the store as it was at "));
  EXPECT_EQ(Scan(restored), rows);

  Ok({"put", "events", "user:8", "click=pin:4"});
  const Json second = Json::parse(Ok({"backup", "create", "--to", Url(), "--json"}));
  const Json pruned = RunJson({"backup", "prune", "--from", Url(), "--keep", "1"});
  EXPECT_EQ(pruned["removed"].size(), 1u);
  EXPECT_EQ(RunJson({"backup", "list", "--from", Url()})["backups"].size(), 1u);
  EXPECT_GT(second["backup"]["sent_objects"].get<uint64_t>(), 0u);
}

TEST_F(KvBackup, AFolderThatDoesNotExistHasNoBackupsAndIsNotMade) {
  const Output refused = Run({"backup", "list", "--from", Url()});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("backups: there is no such folder"));
  EXPECT_FALSE(fs::exists(dir_ / "backups"));
}

TEST_F(KvBackup, AFollowerOfWhatWasWrittenAfterTheBackupIsToldSo) {
  Ok({"dataset", "alter", "events", "--keep-changes-ms", "1d"});
  Ok({"put", "events", "user:8", "click=pin:4"});
  const auto last_token = [](const std::string& lines) {
    const size_t begin = lines.rfind('\n', lines.size() - 2) + 1;
    return Json::parse(lines.substr(begin))["token"].get<std::string>();
  };
  const std::string before = last_token(Ok({"changes", "events"}));
  Ok({"consumers", "set", "events", "search", before});
  Ok({"backup", "create", "--to", Url()});
  Ok({"put", "events", "user:9", "click=pin:5"});
  const std::string after = last_token(Ok({"changes", "events"}));
  const std::string restored = (dir_ / "restored").string();
  EXPECT_EQ(Run({"backup", "restore", "--from", Url(), "--to", restored}).code, 0);

  // As long as nothing is written, and when something else has taken the place of what is lost.
  const auto follow = [&](const std::string& token) {
    return Run({"--data", restored, "changes", "events", "--from", token});
  };
  for (int written = 0; written < 3; ++written) {
    const Output refused = follow(after);
    EXPECT_EQ(refused.code, 1) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr("--snapshot"));
    const Output followed = follow(before);
    EXPECT_EQ(followed.code, 0) << followed.err;
    EXPECT_EQ(std::count(followed.out.begin(), followed.out.end(), '\n'), 1 + written);
    EXPECT_EQ(Run({"--data", restored, "put", "events", "user:10", "click=pin:6"}).code, 0);
  }
  // The place of a consumer that was noted before the backup still holds.
  EXPECT_THAT(Run({"--data", restored, "changes", "events", "--consumer", "search"}).out,
              HasSubstr("user:10"));
}

TEST_F(KvBackup, ADatasetGoesIntoAnotherStoreUnderAnotherName) {
  const std::string rows = Ok({"scan", "events", "--all"});
  EXPECT_THAT(Ok({"backup", "create", "--to", Url(), "--dataset", "events"}),
              HasSubstr("dataset events: 2 units"));
  // It is no backup of the store.
  EXPECT_EQ(RunJson({"backup", "list", "--from", Url()})["backups"].size(), 0u);
  const Json list = RunJson({"backup", "list", "--from", Url(), "--dataset", "events"});
  ASSERT_EQ(list["backups"].size(), 1u);
  EXPECT_EQ(list["backups"][0]["dataset"], "events");
  EXPECT_EQ(list["backups"][0]["units"], 2u);
  EXPECT_EQ(RunJson({"backup", "verify", "--from", Url(), "--dataset", "events", "--deep"})["datasets"],
            Json::array({"events"}));
  EXPECT_THAT(Run({"backup", "show", "--from", Url(), "--dataset", "events"}).out,
              HasSubstr("dataset events of rows, 2 units"));

  const std::string other = (dir_ / "other").string();
  const Output restored =
      Run({"--data", other, "backup", "restore", "--from", Url(), "--dataset", "events", "--as", "monday"});
  EXPECT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("monday on rocksdb is the dataset events as it was at "));
  EXPECT_EQ(Run({"--data", other, "scan", "monday", "--all"}).out, rows);
  const Output again =
      Run({"--data", other, "backup", "restore", "--from", Url(), "--dataset", "events", "--as", "monday"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("dataset: 'monday' exists"));

  EXPECT_THAT(Run({"backup", "restore", "--from", Url()}).err, HasSubstr("--to: name the folder"));
  EXPECT_EQ(Run({"backup", "restore", "--from", Url(), "--to", "x", "--dataset", "events"}).code, 2);
  EXPECT_THAT(Run({"--data", other, "backup", "restore", "--from", Url(), "--dataset", "../x"}).err,
              HasSubstr("dataset"));
  Ok({"backup", "create", "--to", Url(), "--dataset", "events"});
  EXPECT_EQ(
      RunJson({"backup", "prune", "--from", Url(), "--dataset", "events", "--keep", "1"})["removed"].size(),
      1u);
}

TEST_F(KvBackup, ADamagedBackupIsNamedWithTheObject) {
  Ok({"backup", "create", "--to", Url()});
  const Json shown = RunJson({"backup", "show", "--from", Url()});
  const std::string blob = shown["backup"]["files"][0]["blob"];
  fs::remove(dir_ / "backups" / blob);
  const Output verified = Run({"backup", "verify", "--from", Url(), "--quick"});
  EXPECT_EQ(verified.code, 1);
  EXPECT_THAT(verified.out, HasSubstr(blob));
  EXPECT_THAT(verified.err, HasSubstr("is not whole: 1 problems"));
  EXPECT_THAT(verified.err, HasSubstr("kv backup verify --deep"));
  const Output restored = Run({"backup", "restore", "--from", Url(), "--to", (dir_ / "restored").string()});
  EXPECT_EQ(restored.code, 1);
  EXPECT_THAT(restored.err, HasSubstr("cannot restore the backup 20"));
  EXPECT_FALSE(fs::exists(dir_ / "restored/KVSTORE"));
}

TEST_F(KvBackup, TheLogBehindABackupIsVerified) {
  Ok({"backup", "create", "--to", Url()});
  const std::string id = RunJson({"backup", "list", "--from", Url()})["backups"][0]["id"];
  const std::string segment = "log/" + id + "/00000002";
  fs::create_directories(dir_ / "backups/log" / id);
  std::ofstream(dir_ / "backups" / segment) << "no segment";
  for (const char* depth : {"--quick", "--deep"}) {
    const Output verified = Run({"backup", "verify", "--from", Url(), depth});
    EXPECT_EQ(verified.code, 1);
    EXPECT_THAT(verified.out, HasSubstr(segment + ": segments of the log that are missing before it: 1"));
    EXPECT_EQ(verified.out.find("cut off") != std::string::npos, depth == std::string("--deep"));
  }
}

TEST_F(KvBackup, ATimeIsRestoredThoughANewerBackupIsDamaged) {
  Ok({"backup", "create", "--to", Url()});
  Ok({"backup", "create", "--to", Url()});
  const Json list = RunJson({"backup", "list", "--from", Url()});
  const std::string older = list["backups"][0]["id"];
  const fs::path newer = dir_ / "backups/backups" / (list["backups"][1]["id"].get<std::string>() + ".json");
  fs::remove(newer);
  std::ofstream(newer) << "{";
  const Output restored = Run({"backup", "restore", "--from", Url(), "--at", "2100-01-01T00:00:00Z", "--to",
                               (dir_ / "restored").string()});
  EXPECT_EQ(restored.code, 0);
  EXPECT_THAT(restored.err, HasSubstr("a newer backup cannot be read, so an older one is restored"));
  EXPECT_THAT(restored.out, HasSubstr(older));
}

TEST_F(KvBackup, AFailedRestoreIsNotTakenForAStore) {
  fs::create_directories(dir_ / "restored");
  std::ofstream(dir_ / "restored/RESTORING") << "killed";
  std::ofstream(dir_ / "restored/catalog.json") << "{}";
  const Output opened = Run({"--data", (dir_ / "restored").string(), "dataset", "list"});
  EXPECT_EQ(opened.code, 1);
  EXPECT_THAT(opened.err, HasSubstr("is not a KVStore directory"));
}

TEST_F(KvBackup, WhoFindsNoneIsToldWhatIsThere) {
  fs::create_directory(dir_ / "empty");
  const Output missing = Run({"backup", "list", "--from", "file:" + (dir_ / "empty").string()});
  EXPECT_EQ(missing.out, "(none)\n");
  EXPECT_THAT(missing.err, HasSubstr("nor anything else: is that the place?"));
  Ok({"backup", "create", "--dataset", "events", "--to", Url()});
  EXPECT_THAT(Run({"backup", "list", "--from", Url()}).err,
              HasSubstr("it has backups of datasets alone: --dataset events"));
  EXPECT_THAT(Run({"backup", "restore", "--from", Url(), "--to", (dir_ / "x").string()}).err,
              HasSubstr("--dataset events"));
}

TEST_F(KvBackup, MistakesAreExplained) {
  fs::create_directory(dir_ / "backups");
  EXPECT_THAT(Run({"backup", "list"}).err, HasSubstr("--from: say where the backups are"));
  EXPECT_THAT(Run({"backup", "list", "--from", "ftp://x"}).err, HasSubstr("it must be file:DIR"));
  EXPECT_THAT(Run({"backup", "restore", "--from", Url(), "--to", (dir_ / "x").string()}).err,
              HasSubstr("there is no backup"));
  EXPECT_THAT(Run({"backup", "show", "--from", Url(), "--backup", "../x"}).err,
              HasSubstr("an ID looks like"));
  EXPECT_EQ(Run({"backup", "prune", "--from", Url()}).code, 2);
  EXPECT_EQ(Run({"backup", "verify", "--from", Url(), "--quick", "--deep"}).code, 2);
  const Output elsewhere = Run({"--server", "127.0.0.1:1", "backup", "create", "--to", Url()});
  EXPECT_THAT(elsewhere.err, HasSubstr("--server: not together with --to"));
  EXPECT_EQ(elsewhere.code, 2);
  const Output host = Run({"--server", "127.0.0.1:1", "backup", "create", "--host", "MySQL001A"});
  EXPECT_THAT(host.err, HasSubstr("--server: not together with --host"));
  EXPECT_EQ(host.code, 2);
  const Output nowhere = Run({"backup", "restore", "--from", Url()});
  EXPECT_THAT(nowhere.err, HasSubstr("--to: name the folder of the restored store"));
  EXPECT_EQ(nowhere.code, 2);
}

TEST_F(KvBackup, AServerMakesThemWhileItServes) {
  const std::string config =
      File("kv.json", R"({"data": "store", "backup": {"to": "file:backups", "every": "1h", "keep": 2}})");
  const std::string rows = Ok({"scan", "events", "--all"});
  const KvServer server(KV_PROGRAM, {"--config", config});
  // The folder belongs to the server, which says so.
  const Output refused = Kv({"backup", "create", "--to", Url()});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("is open in process"));
  EXPECT_THAT(refused.err, HasSubstr("kv --server ADDR backup create"));
  // The configuration says where the backups are.
  const auto listed = [&] { return RunJson({"--config", config, "backup", "list"})["backups"].size(); };
  ASSERT_TRUE(Eventually([&] { return listed() == 1; }));
  EXPECT_EQ(Run({"--config", config, "backup", "restore", "--to", (dir_ / "restored").string()}).code, 0);
  EXPECT_EQ(Scan(dir_ / "restored"), rows);
}

TEST_F(KvBackup, AServerMakesOneWhenItIsTold) {
  const std::string config = File("kv.json", R"({"data": "store", "backup": {"to": "file:backups"}})");
  const std::string rows = Ok({"scan", "events", "--all"});
  const KvServer server(KV_PROGRAM, {"--config", config});
  const Output whole = Run({"--server", server.address(), "backup", "create"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr(" files; sent "));
  const Json one = RunJson({"--server", server.address(), "backup", "create", "--dataset", "events"});
  EXPECT_EQ(one["backup"]["units"], 2u);
  EXPECT_THAT(one["backup"]["url"].get<std::string>(), HasSubstr("backups/datasets/events"));
  EXPECT_THAT(Run({"--server", server.address(), "backup", "create", "--dataset", "none"}).err,
              HasSubstr("there is none named 'none'"));
  EXPECT_EQ(RunJson({"--config", config, "backup", "list"})["backups"].size(), 1u);
  EXPECT_EQ(Run({"--config", config, "backup", "restore", "--to", (dir_ / "restored").string()}).code, 0);
  EXPECT_EQ(Scan(dir_ / "restored"), rows);
  const std::string other = (dir_ / "other").string();
  EXPECT_EQ(Run({"--data", other, "backup", "restore", "--from", Url(), "--dataset", "events"}).code, 0);
  EXPECT_EQ(Scan(other), rows);

  const KvServer without(KV_PROGRAM, {"--data", (dir_ / "another").string()});
  EXPECT_THAT(Run({"--server", without.address(), "backup", "create"}).err,
              HasSubstr("its configuration has no backup.to"));
}

}  // namespace
}  // namespace kvstore::testing
