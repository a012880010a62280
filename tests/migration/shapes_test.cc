#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "idgen/object_id.h"
#include "tests/migration/migration_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

/// Migrations of objects and mappings, and between the two engines of MySQL.
namespace kvstore::testing {
namespace {

TEST_F(MigrationTest, RowsMoveFromEngineToEngineOnTheSameServers) {
  Create({.name = "events", .backend = "mysql", .engine = "innodb"});
  History history(Clients::kKeys);
  EXPECT_THAT(store_->Try("create", "events", {{"target", "mysql"}, {"engine", "innodb"}}),
              FailsWith(absl::StatusCode::kInvalidArgument, "target: the dataset is on"));
  EXPECT_THAT(store_->Try("create", "events", {{"target", "mysql"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition, "serves 'events' already"));
  {
    Clients clients(store_->router(), "events", history, 4, Seed("engines"));
    clients.Work(100);
    store_->Do("create", "events", {{"target", "mysql"}, {"engine", "myrocks"}, {"share", 100}});
    store_->Do("start", "events");
    store_->Await("events", "ready");
    store_->Do("cancel", "events");
    store_->Await("events", "aborted");
    EXPECT_EQ(Traces("events"), (std::set<std::string>{"events"}));
    clients.Work(50);
    for (const std::string engine : {"myrocks", "innodb"}) {
      store_->Do("create", "events", {{"target", "mysql"}, {"engine", engine}, {"share", 100}});
      store_->Do("start", "events");
      store_->Await("events", "ready");
      store_->Do("cutover", "events");
      store_->Await("events", "reversible");
      EXPECT_EQ(store_->router().GetDataset("events")->engine, engine);
      clients.Work(50);
      store_->Do("reverse", "events");
      store_->Await("events", "ready");
      clients.Work(50);
      store_->Do("verify", "events");
      EXPECT_TRUE(Eventually([&] { return store_->Do("status", "events")["verify_passes"] >= 2; }));
      store_->Await("events", "ready");
      store_->Do("cutover", "events");
      store_->Await("events", "reversible");
      store_->Do("finish", "events");
      store_->Await("events", "finished");
      clients.Work(50);
      EXPECT_EQ(Traces("events"), (std::set<std::string>{"events"}));
      const std::string stored = SharedFleet().server(0).Run(
          "SELECT DISTINCT LOWER(engine) FROM information_schema.tables WHERE table_name = 'events' AND "
          "table_schema LIKE 'mod%'");
      EXPECT_EQ(stored, engine == "myrocks" ? "rocksdb\n" : "innodb\n");
    }
    clients.Stop();
    EXPECT_EQ(clients.errors(), 0u) << clients.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
}

TEST_F(MigrationTest, ObjectsMoveFromEngineToEngineAndNoIdIsGivenTwice) {
  Create({.name = "pins", .shape = Shape::kObjects, .backend = "mysql"});
  std::set<uint64_t> ids;
  const auto create = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto id = store_->router().CreateObject("pins", R"({"n":1})", {});
      ASSERT_OK(id);
      EXPECT_TRUE(ids.insert(*id).second) << "given twice: " << *id;
    }
  };
  create(200);
  store_->Do("create", "pins", {{"target", "mysql"}, {"engine", "myrocks"}, {"share", 100}, {"auto", true}});
  store_->Do("start", "pins");
  store_->Await("pins", "reversible");
  create(200);
  store_->Do("finish", "pins");
  store_->Await("pins", "finished");
  create(50);
  for (const uint64_t id : ids) EXPECT_OK(store_->router().GetObject("pins", id, {}));
}

TEST_F(MigrationTest, ObjectsMoveAndNoIdIsGivenTwice) {
  Create({.name = "pins", .shape = Shape::kObjects});
  Router& router = store_->router();
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::map<uint64_t, std::string> expected;  // guarded by mutex
  std::atomic<int> created{0};
  std::vector<std::string> errors;
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const std::string data = fmt::format(R"({{"n":"{}/{}"}})", t, i);
        const auto id = router.CreateObject("pins", data, {});
        absl::Status status = id.status();
        std::string now = data;
        if (status.ok() && i % 3 == 0) {
          now = R"({"changed":true})";
          status = router.UpdateObject("pins", *id, [&](std::string_view) { return now; }, {}).status();
        }
        bool hard = false;
        if (status.ok() && i % 7 == 0) {
          status = router.DeleteObject("pins", *id, /*hard=*/true);
          hard = true;
        }
        const std::lock_guard lock(mutex);
        if (!status.ok()) {
          errors.push_back(status.ToString());
          continue;
        }
        const bool fresh = expected.emplace(*id, hard ? "" : now).second;
        if (!fresh) errors.push_back("given twice: " + std::to_string(*id));
        ++created;
        // Throttled, so that the copy can keep up.
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    });
  }
  const auto more = [&] {
    const int before = created;
    EXPECT_TRUE(Eventually([&] { return created > before + 200; }));
  };
  more();
  store_->Do("create", "pins", {{"target", "mysql"}, {"share", 100}, {"auto", true}});
  store_->Do("start", "pins");
  store_->Await("pins", "reversible");
  more();
  store_->Do("reverse", "pins");
  store_->Await("pins", "ready");
  more();
  store_->Do("cutover", "pins");
  store_->Await("pins", "reversible");
  store_->Do("finish", "pins");
  store_->Await("pins", "finished");
  more();
  stop = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(errors, (std::vector<std::string>{}));
  for (const auto& [id, data] : expected) {
    const auto object = router.GetObject("pins", id, {});
    if (data.empty()) {
      ASSERT_TRUE(absl::IsNotFound(object.status())) << "deleted, and is back";
    } else {
      ASSERT_OK(object);
      ASSERT_EQ(object->data, data);
    }
  }
}

TEST_F(MigrationTest, ScansOfObjectsAndMappingsGoOnWhereTheirDatasetHasMoved) {
  Create({.name = "pins", .shape = Shape::kObjects});
  Create({.name = "likes", .shape = Shape::kMappings});
  Router& router = store_->router();
  std::set<uint64_t> expected;
  for (int i = 0; i < 300; ++i) {
    const auto id = router.CreateObject("pins", "{}", {});
    ASSERT_OK(id);
    expected.insert(*id);
    ASSERT_OK(router.AddMapping("likes", *id, 7, 1));
  }
  std::vector<uint64_t> objects;
  std::vector<uint64_t> entries;
  ObjectScanOptions object_options{.limit = 50};
  MappingScanOptions mapping_options{.limit = 50};
  const auto read_pages = [&] {
    auto pins = router.ScanObjects("pins", {}, object_options);
    ASSERT_OK(pins);
    for (const Object& object : pins->objects) objects.push_back(object.id);
    object_options.marker = pins->marker;
    auto likes = router.ScanMappings("likes", {}, mapping_options);
    ASSERT_OK(likes);
    for (const ScannedMapping& entry : likes->entries) entries.push_back(entry.from);
    mapping_options.marker = likes->marker;
    ASSERT_NE(object_options.marker, "");
    ASSERT_NE(mapping_options.marker, "");
  };
  read_pages();
  for (const char* dataset : {"pins", "likes"}) {
    store_->Do("create", dataset, {{"target", "mysql"}, {"share", 100}, {"auto", true}});
    store_->Do("start", dataset);
    store_->Await(dataset, "reversible");
    EXPECT_EQ(router.GetDataset(dataset)->backend, "mysql");
  }
  read_pages();
  for (const char* dataset : {"pins", "likes"}) {
    store_->Do("reverse", dataset);
    store_->Await(dataset, "ready");
    EXPECT_EQ(router.GetDataset(dataset)->backend, "rocksdb");
  }
  object_options.limit = mapping_options.limit = 20;
  read_pages();
  object_options.limit = mapping_options.limit = 1000;
  const auto pins = router.ScanObjects("pins", {}, object_options);
  ASSERT_OK(pins);
  EXPECT_EQ(pins->marker, "");
  for (const Object& object : pins->objects) objects.push_back(object.id);
  const auto likes = router.ScanMappings("likes", {}, mapping_options);
  ASSERT_OK(likes);
  EXPECT_EQ(likes->marker, "");
  for (const ScannedMapping& entry : likes->entries) entries.push_back(entry.from);
  const std::vector<uint64_t> all(expected.begin(), expected.end());
  EXPECT_EQ(objects, all);
  EXPECT_EQ(entries, all);
}

TEST_F(MigrationTest, MappingsMoveWithTheirOrderAndCount) {
  Create({.name = "likes", .shape = Shape::kMappings});
  Router& router = store_->router();
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> expected;
  const auto from = [](uint64_t i) { return ObjectId::Make(i % 16, 1, 1 + i % 3)->value(); };
  uint64_t next = 0;
  const auto change = [&](int count) {
    for (int i = 0; i < count; ++i, ++next) {
      const uint64_t to = next % 500;
      if (next % 5 == 4) {
        ASSERT_OK(router.RemoveMapping("likes", from(next), to));
        expected.erase({from(next), to});
      } else {
        ASSERT_OK(router.AddMapping("likes", from(next), to, next));
        expected[{from(next), to}] = next;
      }
    }
  };
  const auto check = [&] {
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> found;
    for (uint64_t i = 0; i < 48; ++i) {
      const auto page = router.ListMapping("likes", from(i), {.limit = 1000});
      ASSERT_OK(page);
      uint64_t last = 0;
      for (const MappingEntry& entry : page->entries) {
        EXPECT_GE(entry.sequence, last);
        last = entry.sequence;
        found[{from(i), entry.to}] = entry.sequence;
      }
      EXPECT_EQ(*router.CountMapping("likes", from(i)), page->entries.size());
    }
    EXPECT_EQ(found, expected);
  };
  change(2000);
  store_->Do("create", "likes", To("mysql"));
  store_->Do("start", "likes");
  change(500);
  store_->Await("likes", "ready");
  change(500);
  check();
  store_->Do("cutover", "likes");
  change(500);
  store_->Await("likes", "reversible");
  change(500);
  check();
  store_->Do("rollback", "likes");
  change(300);
  store_->Await("likes", "aborted");
  check();
}

}  // namespace
}  // namespace kvstore::testing
