#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "backends/rocksdb/backend.h"
#include "backends/rocksdb/engine/data_dir.h"
#include "base/fail_point.h"
#include "migration/migration.h"
#include "tests/migration/migrating_store.h"
#include "tests/support/eventually.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A worker stops in the middle of a step, is assumed to be dead, and wakes up after another one has taken
/// over.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

/// A catalog that two processes share.
struct Shared {
  explicit Shared(std::filesystem::path path) : catalog(std::move(path)) {}
  std::mutex mutex;
  MemoryLedger ledger;
  FileCatalog catalog;                                    // guarded by mutex
  std::map<std::string, std::function<void()>> watchers;  // by process; guarded by mutex
  std::string dead;                                       // a process; guarded by mutex
};

class SharedCatalog : public Catalog {
  template <typename Work>
  auto Do(const Work& work) {
    const std::lock_guard lock(shared_->mutex);
    return work(shared_->catalog);
  }
  absl::StatusOr<int64_t> Tell(absl::StatusOr<int64_t> version) {
    const std::lock_guard lock(shared_->mutex);
    for (const auto& [process, watcher] : shared_->watchers) {
      if (watcher) watcher();
    }
    return version;
  }

 public:
  SharedCatalog(std::shared_ptr<Shared> all, std::string self)
      : shared_(std::move(all)), self_(std::move(self)) {}
  absl::StatusOr<CatalogContents> Load() override {
    return Do([](FileCatalog& catalog) { return catalog.Load(); });
  }
  absl::StatusOr<CatalogContents> LoadCopy() const override { return absl::NotFoundError("no copy"); }
  absl::StatusOr<int64_t> Put(const CatalogEntry& entry, int64_t version,
                              const std::optional<RecordFence>& fence) override {
    return Tell(Do([&](FileCatalog& catalog) { return catalog.Put(entry, version, fence); }));
  }
  absl::StatusOr<int64_t> Remove(std::string_view name, int64_t version) override {
    return Tell(Do([&](FileCatalog& catalog) { return catalog.Remove(name, version); }));
  }
  absl::StatusOr<CatalogRecord> GetRecord(std::string_view name) override {
    return Do([&](FileCatalog& catalog) { return catalog.GetRecord(name); });
  }
  absl::StatusOr<int64_t> PutRecord(std::string_view name, std::string_view text, int64_t version) override {
    return Do([&](FileCatalog& catalog) { return catalog.PutRecord(name, text, version); });
  }
  absl::Status RemoveRecord(std::string_view name, int64_t version) override {
    return Do([&](FileCatalog& catalog) { return catalog.RemoveRecord(name, version); });
  }
  absl::StatusOr<std::vector<std::string>> ListRecords() override {
    return Do([](FileCatalog& catalog) { return catalog.ListRecords(); });
  }
  Ledger& ledger() override { return shared_->ledger; }
  bool shared() const override { return true; }
  std::string self() const override { return self_; }
  bool IsAlive(const std::string& owner) override {
    const std::lock_guard lock(shared_->mutex);
    return owner != shared_->dead;
  }
  void OnChange(std::function<void()> on_change) override {
    const std::lock_guard lock(shared_->mutex);
    shared_->watchers[self_] = std::move(on_change);
  }
  std::chrono::milliseconds poll_interval() const override { return std::chrono::milliseconds(100); }
  void Describe(MetricsSink&) const override {}

 private:
  const std::shared_ptr<Shared> shared_;
  const std::string self_;
};

/// The parts that all processes of a test share: an embedded store, the fleet, and the catalog. Must outlive
/// them.
struct Site {
  Site() {
    SharedFleet().Clear();
    auto data = rocks::DataDir::Open(dir.path(), /*create=*/true);
    EXPECT_OK(data);
    shared = std::make_shared<Shared>(data->catalog());
    rocksdb = *RocksDbBackend::Open(*std::move(data), {}, {},
                                    {.cache_bytes = 8 << 20, .write_buffer_bytes = 8 << 20});
    mysql = *SharedFleet().Open();
  }
  /// Makes a process, and no other one, seem to be dead.
  void Die(const std::string& process) const {
    const std::lock_guard lock(shared->mutex);
    shared->dead = process;
  }

  const TempDir dir;
  std::shared_ptr<Shared> shared;
  std::shared_ptr<Backend> rocksdb;
  std::shared_ptr<Backend> mysql;
};

/// A process: a router and a migrator over backends that it shares with others.
class Process {
 public:
  Process(const Site& site, const std::string& self) {
    auto catalog = std::make_unique<SharedCatalog>(site.shared, self);
    const CatalogContents contents = *catalog->Load();
    Router::Backends backends;
    backends.emplace("rocksdb", std::make_unique<WrappedBackend>(site.rocksdb, nullptr));
    backends.emplace("mysql", std::make_unique<WrappedBackend>(site.mysql, nullptr));
    router_ = *Router::Open(std::move(catalog), contents, std::move(backends), "rocksdb");
    migrator_ = std::make_unique<Migrator>(router_->keeper(), "");
  }
  Router& router() { return *router_; }
  Migrator& migrator() { return *migrator_; }
  absl::StatusOr<Json> Do(const std::string& command, Json options = Json::object()) {
    options["command"] = command;
    options["dataset"] = "events";
    options["who"] = "test";
    if (command == "create") options["freeze_ms"] = 10'000;  // however busy the machine is
    return migrator_->Command(*ParseJson(options.dump()));
  }
  bool Await(const std::string& phase) {
    return Eventually([&] {
      const auto status = Do("status");
      return status.ok() && status->value("phase", "") == phase;
    });
  }

 private:
  std::unique_ptr<Router> router_;
  std::unique_ptr<Migrator> migrator_;
};

/// Blocks the first thread that reaches a fail point.
class Stop {
 public:
  explicit Stop(const char* point) : point_(point) {
    SetFailPointHook([this](std::string_view name) {
      if (name != point_) return;
      std::unique_lock lock(mutex_);
      if (std::exchange(there_, true)) return;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
    });
  }
  ~Stop() {
    Release();
    SetFailPointHook(nullptr);
  }
  bool Reached() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [this] { return there_; });
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  const std::string_view point_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool there_ = false;     // guarded by mutex_
  bool released_ = false;  // guarded by mutex_
};

class TwoWorkersTest : public ::testing::TestWithParam<const char*> {};

TEST(TwoWorkers, OneThatWakesUpWhenAllIsOverEndsToo) {
  const Site site;
  Process first(site, "first");
  ASSERT_OK(first.router().CreateDataset({.name = "events"}));
  Process second(site, "second");
  // The next step of the worker is to write a record that does not exist any more.
  Stop stop("cutover.routed");
  ASSERT_OK(first.Do("create", {{"target", "mysql"}, {"share", 100}, {"auto", true}}));
  ASSERT_OK(first.Do("start"));
  ASSERT_TRUE(stop.Reached());
  site.Die("first");
  ASSERT_OK(second.Do("resume"));
  ASSERT_TRUE(second.Await("reversible"));
  ASSERT_OK(second.Do("finish"));
  ASSERT_TRUE(second.Await("finished"));
  stop.Release();
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(first.Do("status").status()); }))
      << "it does not try for ever: " << first.Do("status").value_or(Json()).dump(1);
}

/// An operator's command is given to another process while the first one only seems to be dead.
TEST(TwoWorkers, OneThatWasOnlySlowWritesOverNoCommand) {
  const Site site;
  Process first(site, "first");
  ASSERT_OK(first.router().CreateDataset({.name = "events"}));
  Process second(site, "second");
  Stop stop("verify.pass");
  ASSERT_OK(first.Do("create", {{"target", "mysql"}, {"share", 100}, {"auto", true}}));
  ASSERT_OK(first.Do("start"));
  ASSERT_TRUE(stop.Reached());
  site.Die("first");
  // The second one has recorded the command, and has not taken the migration over yet.
  auto waiting = migration::Migration::Open(second.router().keeper(), "events");
  ASSERT_OK(waiting);
  ASSERT_OK((*waiting)->Request(migration::Wanted::kCancel, "operator"));
  stop.Release();
  EXPECT_TRUE(Eventually([&] {
    return first.Do("status").value_or(Json::object()).value("wanted", "") == "cancel";
  })) << first.Do("status").value_or(Json()).dump(1);
  ASSERT_OK(second.Do("resume"));
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(first.Do("status").status()); }));
  EXPECT_EQ(second.router().GetDataset("events")->backend, "rocksdb");
}

class SleptInTakeover : public ::testing::TestWithParam<const char*> {};

TEST_P(SleptInTakeover, OneThatWakesUpWhenAllIsOverLeavesAllAsItIs) {
  const Site site;
  Process first(site, "first");
  ASSERT_OK(first.router().CreateDataset({.name = "events"}));
  const CellWrite cell{"c", "v", std::nullopt};
  ASSERT_OK(first.router().PutRow("events", "row", {&cell, 1}, {}).status());
  Process second(site, "second");
  Process third(site, "third");
  ASSERT_OK(first.Do("create", {{"target", "mysql"}, {"share", 100}, {"auto", true}}));
  ASSERT_OK(first.Do("start"));
  ASSERT_TRUE(first.Await("reversible"));
  ASSERT_OK(first.Do("reverse"));
  ASSERT_TRUE(first.Await("ready"));
  site.Die("first");
  Stop stop(GetParam());
  ASSERT_OK(second.Do("resume"));
  ASSERT_TRUE(stop.Reached());
  site.Die("second");
  ASSERT_OK(third.Do("resume"));
  ASSERT_OK(third.Do("cutover"));
  ASSERT_TRUE(third.Await("reversible"));
  ASSERT_OK(third.Do("finish"));
  ASSERT_TRUE(third.Await("finished"));
  stop.Release();
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(second.Do("status").status()); }))
      << second.Do("status").value_or(Json()).dump(1);
  const auto row = third.router().GetRow("events", "row", {});
  ASSERT_OK(row);
  EXPECT_EQ(row->items.size(), 1u);
  EXPECT_OK(third.router().PutRow("events", "another", {&cell, 1}, {}).status());
  // Nothing holds the dataset for a migration that nobody knows.
  EXPECT_OK(third.router().DropDataset("events", {}));
}

INSTANTIATE_TEST_SUITE_P(Points, SleptInTakeover, ::testing::Values("takeover.recorded", "takeover.half"),
                         [](const auto& one) {
                           return std::string(one.param).substr(std::string("takeover.").size());
                         });

TEST_P(TwoWorkersTest, TheOneThatWakesUpDoesNoHarm) {
  const Site site;
  History history(Clients::kKeys);
  const uint64_t seed = Seed("two workers");
  {
    Process first(site, "first");
    ASSERT_OK(first.router().CreateDataset({.name = "events"}));
    Process second(site, "second");
    Clients here(first.router(), "events", history, 3, seed);
    Clients there(second.router(), "events", history, 3, seed + 10);
    here.Work(50);
    there.Work(50);
    Stop stop(GetParam());
    ASSERT_OK(first.Do("create", {{"target", "mysql"}, {"share", 100}, {"auto", true}}));
    ASSERT_OK(first.Do("start"));
    ASSERT_TRUE(stop.Reached());
    EXPECT_THAT(second.Do("resume"), FailsWith(absl::StatusCode::kFailedPrecondition, "process first runs"));
    site.Die("first");
    ASSERT_OK(second.Do("resume"));
    // A cutover that was cut short may have been given up, and then has to be requested again.
    EXPECT_TRUE(Eventually([&] {
      const std::string phase = second.Do("status").value_or(Json::object()).value("phase", "");
      if (phase == "ready") second.Do("cutover").IgnoreError();
      return phase == "reversible";
    })) << second.Do("status").value_or(Json()).dump(1);
    here.Work(30);
    there.Work(30);
    stop.Release();
    // The old worker ends by itself, and its changes until then are refused.
    EXPECT_TRUE(Eventually([&] {
      const Json status = first.Do("status").value_or(Json::object());
      return status.value("phase", "") == "reversible";
    })) << "it shows what the other one has done";
    here.Work(30);
    there.Work(30);
    ASSERT_OK(second.Do("finish"));
    EXPECT_TRUE(second.Await("finished"));
    here.Work(30);
    there.Work(30);
    here.Stop();
    there.Stop();
    EXPECT_EQ(here.errors(), 0u) << here.last_error();
    EXPECT_EQ(there.errors(), 0u) << there.last_error();
  }
  EXPECT_EQ(history.Check(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Points, TwoWorkersTest,
                         ::testing::Values("prepare.capture", "backfill.read", "drain.listed",
                                           "drain.replaced", "verify.pass", "cutover.armed", "cutover.frozen",
                                           "cutover.counted", "cutover.moved", "cutover.serving",
                                           "cutover.routed"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace kvstore::testing
