#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "coordination/zookeeper.h"
#include "tests/cli/kv_program.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/zookeeper_server.h"

/// A shared catalog that does not fit the directory that the command names, or has an entry that cannot be
/// read: what `kv` says and advises.
namespace kvstore::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class KvSharedCatalog : public KvProgram {
 protected:
  fs::path store() const { return dir_ / "store"; }
};

TEST_F(KvSharedCatalog, ASharedCatalogsDatasetIsWhereItsBackendIs) {
  const ZooKeeperServer zookeeper;
  const std::string config = File(
      "kv.json", Json{{"data", store().string()}, {"zookeeper", {{"servers", zookeeper.address()}}}}.dump());
  Ok({"--config", config, "dataset", "create", "events"});
  // Another directory in its place, first with datasets of its own, and then without any.
  fs::rename(store(), dir_ / "right");
  Ok({"dataset", "create", "mine"});
  for (const std::string message : {"dataset 'events' is in the catalog, and its data is not here",
                                    "there are 1 datasets in the catalog, and no database here"}) {
    const Output output = Kv({"--config", config, "get", "events", "r"});
    EXPECT_EQ(output.code, 1);
    EXPECT_THAT(output.err, HasSubstr(message));
    EXPECT_THAT(output.err, HasSubstr("the configuration names another directory"));
    EXPECT_THAT(output.err, Not(HasSubstr("damaged")));
    fs::remove_all(store() / "rocksdb");
  }
}

TEST_F(KvSharedCatalog, AServerBacksUpItsStoreWithTheCatalog) {
  const ZooKeeperServer zookeeper;
  const std::string url = "file:" + (dir_ / "backups").string();
  const auto config_of = [&](const fs::path& data, const ZooKeeperServer& with) {
    return Json{{"data", data.string()},
                {"zookeeper", {{"servers", with.address()}}},
                {"backup", {{"to", url}, {"every", "1h"}, {"log", true}}}}
        .dump();
  };
  const auto run = [](std::vector<std::string> words) {
    words.insert(words.begin(), KV_PROGRAM);
    return RunProgram(words);
  };
  KvServer server(KV_PROGRAM, {"--config", File("kv.json", config_of(store(), zookeeper))});
  const auto at_server = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--server", server.address()});
    return run(words);
  };
  EXPECT_EQ(at_server({"dataset", "create", "events"}).code, 0);
  EXPECT_EQ(at_server({"put", "events", "r", "c=in the backup"}).code, 0);
  // It may be making one already, because one was due.
  EXPECT_TRUE(Eventually([&] { return at_server({"backup", "create"}).code == 0; }));
  const Output verified = run({"backup", "verify", "--from", url, "--deep", "--json"});
  EXPECT_EQ(Json::parse(verified.out)["datasets"], Json::array({"events"})) << verified.err;
  EXPECT_EQ(at_server({"put", "events", "later", "c=in the log"}).code, 0);
  EXPECT_EQ(server.Stop(), 0);

  // A restored folder opens without ZooKeeper.
  const std::string backup_alone = (dir_ / "backup").string();
  EXPECT_EQ(run({"backup", "restore", "--from", url, "--to", backup_alone}).code, 0);
  EXPECT_THAT(run({"--data", backup_alone, "get", "events", "r"}).out, HasSubstr("in the backup"));
  const std::string with_log = (dir_ / "with-log").string();
  const Output restored = run({"backup", "restore", "--from", url, "--at", "2999-01-01", "--to", with_log});
  EXPECT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(run({"--data", with_log, "get", "events", "later"}).out, HasSubstr("in the log"));

  // A ZooKeeper that has lost everything gets the catalog back, and the store is what it was.
  const ZooKeeperServer fresh;
  const std::string again = File("again.json", config_of(with_log, fresh));
  const Output catalog = run({"--config", again, "backup", "restore", "--catalog"});
  EXPECT_EQ(catalog.code, 0) << catalog.err;
  EXPECT_THAT(run({"--config", again, "get", "events", "r"}).out, HasSubstr("in the backup"));
  EXPECT_THAT(run({"--config", again, "get", "events", "later"}).out, HasSubstr("in the log"));
  // Once more finds nothing to do; another catalog is not mixed with it.
  EXPECT_THAT(run({"--config", again, "backup", "restore", "--catalog"}).out, HasSubstr("0 of 1 nodes"));
  // The log that follows the backup of a store has other contents than that of a pair, and is not read.
  const Json list = Json::parse(run({"backup", "list", "--from", url, "--json"}).out);
  for (const Json& backup : list["backups"]) {
    const Output named = run({"--config", again, "backup", "restore", "--catalog", "--backup", backup["id"]});
    // Each is read; an earlier one is another catalog than the one that is there now.
    EXPECT_TRUE(named.code == 0 ||
                named.err.find("a catalog is restored only where there is none") != std::string::npos)
        << named.err;
  }
  EXPECT_EQ(run({"--config", again, "dataset", "create", "other"}).code, 0);
  EXPECT_THAT(run({"--config", again, "backup", "restore", "--catalog"}).err,
              HasSubstr("which the backup does not have"));
}

TEST_F(KvSharedCatalog, ADatasetWhoseEntryCannotBeReadIsNamedAndHidesNoOther) {
  const ZooKeeperServer server;
  const std::string config = File(
      "kv.json", Json{{"data", store().string()}, {"zookeeper", {{"servers", server.address()}}}}.dump());
  for (const char* const dataset : {"bad", "good"}) {
    Ok({"--config", config, "dataset", "create", dataset});
    Ok({"--config", config, "put", dataset, "r", "c=v"});
  }
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  const auto whole = zookeeper.Get("/kvstore/datasets/bad", /*watch=*/false);
  ASSERT_TRUE(whole.ok());
  ASSERT_TRUE(zookeeper.Set("/kvstore/datasets/bad", "{", -1).ok());
  const Output list = Kv({"--config", config, "dataset", "list"});
  EXPECT_EQ(list.code, 1);
  EXPECT_THAT(list.out, HasSubstr("unreadable"));
  EXPECT_THAT(list.out, HasSubstr("good"));
  EXPECT_THAT(list.err, HasSubstr("cannot be read: bad;"));
  Fails({"--config", config, "get", "bad", "r"}, "DATA_LOSS");
  const Output good = Kv({"--config", config, "get", "good", "r"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("v"));
  EXPECT_THAT(good.err, HasSubstr("other datasets are not affected")) << "is the library's log";
  Fails({"--config", config, "dataset", "create", "new"}, "a type number could be given twice");
  // docs/runbook.md: each data directory has the catalog as it was when all of it could be read.
  std::ifstream in(store() / "catalog-copy.json");
  const Json copy = Json::parse(in);
  std::string kept;
  for (const Json& entry : copy["datasets"]) {
    if (entry["dataset"] == "bad") kept = entry.dump();
  }
  ASSERT_TRUE(zookeeper.Set("/kvstore/datasets/bad", kept, -1).ok());
  Ok({"--config", config, "dataset", "list"});
  EXPECT_THAT(Ok({"--config", config, "get", "bad", "r"}), HasSubstr("v"));
}

TEST_F(KvSharedCatalog, ObjectsOfADatasetWhoseEntryCannotBeReadAreNotTakenForGone) {
  const ZooKeeperServer server;
  const std::string config = File(
      "kv.json", Json{{"data", store().string()}, {"zookeeper", {{"servers", server.address()}}}}.dump());
  Ok({"--config", config, "dataset", "create", "pins", "--shape", "objects"});
  Ok({"--config", config, "dataset", "create", "boards", "--shape", "mappings"});
  std::string id = Ok({"--config", config, "object", "create", "pins", R"({"a": 1})"});
  id.erase(id.find_last_not_of('\n') + 1);
  Ok({"--config", config, "mapping", "add", "boards", id, id});
  ZooKeeper zookeeper({.servers = server.address()}, nullptr);
  ASSERT_TRUE(zookeeper.Set("/kvstore/datasets/pins", "{", -1).ok());
  const Output list = Kv({"--config", config, "mapping", "list", "boards", id, "--objects"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("the catalog's entry of 'pins' cannot be read"));
}

TEST_F(KvSharedCatalog, AStoreIsNotBackedUpWithoutItsCatalog) {
  const ZooKeeperServer server;
  const std::string config = File(
      "kv.json", Json{{"data", store().string()}, {"zookeeper", {{"servers", server.address()}}}}.dump());
  Ok({"--config", config, "dataset", "create", "kept"});
  Ok({"--config", config, "put", "kept", "r", "c=v"});
  const fs::path backups = dir_ / "backups";
  const std::string place = "file:" + backups.string();
  // Without the configuration nobody knows that the catalog is in ZooKeeper.
  const Output output = Kv({"backup", "create", "--to", place});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.err, HasSubstr("catalog.json is missing, and there is data of 1 datasets: kept"));
  EXPECT_FALSE(fs::exists(backups / "backups"));
  Ok({"--config", config, "backup", "create", "--to", place});
  const std::string restored = (dir_ / "restored").string();
  Ok({"backup", "restore", "--from", place, "--to", restored});
  EXPECT_THAT(RunProgram({KV_PROGRAM, "--data", restored, "get", "kept", "r"}).out, HasSubstr("v"));
}

TEST_F(KvSharedCatalog, ACatalogOfAnotherStoreBelongsToItsOwnBackup) {
  Ok({"dataset", "create", "one"});
  fs::rename(store(), dir_ / "one");
  Ok({"dataset", "create", "other"});
  fs::copy_file(dir_ / "one" / "catalog.json", store() / "catalog.json",
                fs::copy_options::overwrite_existing);
  const Output output = Kv({"get", "one", "r"});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.err, HasSubstr("dataset 'one' is in the catalog, and its data is not here"));
  EXPECT_THAT(output.err, HasSubstr("restore both from the same backup"));
}

}  // namespace
}  // namespace kvstore::testing
