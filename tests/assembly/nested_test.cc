#include <gtest/gtest.h>

#include <any>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "assembly/backend_config.h"
#include "assembly/backend_opener.h"
#include "assembly/backend_reader.h"
#include "assembly/backend_type.h"
#include "assembly/config.h"
#include "assembly/open_router.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Backends that stand in front of others, by a type that only this test knows.
namespace kvstore {
namespace {

using testing::FailsWith;
using testing::TempDir;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Calls {
  int creates = 0;
  int opens = 0;
  size_t batch_bytes = 0;  // of objects that were read in batches
};

/// Passes everything on to the objects of another backend, and counts.
class CountingObjects : public ObjectStore {
 public:
  CountingObjects(std::shared_ptr<ObjectStore> inner, Calls& calls)
      : inner_(std::move(inner)), calls_(calls) {}

  absl::StatusOr<uint64_t> Create(std::string_view data, const CreateOptions& options) override {
    return inner_->Create(data, options);
  }
  absl::StatusOr<Object> Get(uint64_t id, const ObjectReadOptions& options) override {
    return inner_->Get(id, options);
  }
  std::vector<absl::StatusOr<Object>> GetMany(std::span<const uint64_t> ids,
                                              const ObjectReadOptions& options) override {
    auto objects = inner_->GetMany(ids, options);
    for (const auto& object : objects) calls_.batch_bytes += object.ok() ? object->data.size() : 0;
    return objects;
  }
  absl::StatusOr<Object> Update(uint64_t id, const ObjectTransform& transform,
                                const UpdateOptions& options) override {
    return inner_->Update(id, transform, options);
  }
  absl::Status Erase(uint64_t id) override { return inner_->Erase(id); }
  absl::StatusOr<ObjectScanPage> Scan(const IdRange& range, const ObjectScanOptions& options) override {
    return inner_->Scan(range, options);
  }
  absl::StatusOr<std::vector<Partition>> Partitions(size_t wanted) override {
    return inner_->Partitions(wanted);
  }

 private:
  const std::shared_ptr<ObjectStore> inner_;
  Calls& calls_;
};

/// Passes everything on to another backend, and counts.
class CountingBackend : public Backend {
 public:
  CountingBackend(std::unique_ptr<Backend> inner, Calls& calls) : inner_(std::move(inner)), calls_(calls) {}

  Capabilities capabilities() const override { return inner_->capabilities(); }
  absl::Status CreateDataset(const DatasetSpec& spec) override {
    ++calls_.creates;
    return inner_->CreateDataset(spec);
  }
  absl::Status AlterDataset(const DatasetSpec& spec) override { return inner_->AlterDataset(spec); }
  absl::Status NoteSettings(const DatasetSpec& spec) override { return inner_->NoteSettings(spec); }
  absl::Status DropDataset(const DatasetSpec& spec) override { return inner_->DropDataset(spec); }
  absl::StatusOr<std::shared_ptr<RowStore>> OpenRows(const DatasetSpec& spec) override {
    ++calls_.opens;
    return inner_->OpenRows(spec);
  }
  absl::StatusOr<std::shared_ptr<ObjectStore>> OpenObjects(const DatasetSpec& spec) override {
    auto objects = inner_->OpenObjects(spec);
    if (!objects.ok()) return objects;
    return std::make_shared<CountingObjects>(*std::move(objects), calls_);
  }
  absl::StatusOr<std::shared_ptr<MappingStore>> OpenMappings(const DatasetSpec& spec) override {
    return inner_->OpenMappings(spec);
  }
  absl::StatusOr<ReclaimResult> Reclaim(const DatasetSpec& spec, const Progress& progress) override {
    return inner_->Reclaim(spec, progress);
  }
  absl::StatusOr<DatasetStats> Stats(const DatasetSpec& spec) override { return inner_->Stats(spec); }
  absl::Status DropLeftover(const DatasetSpec& spec) override { return inner_->DropLeftover(spec); }
  absl::StatusOr<std::unique_ptr<MigrationEndpoint>> OpenForMigration(const DatasetSpec& spec) override {
    return inner_->OpenForMigration(spec);
  }
  absl::Status CheckWrites() override { return inner_->CheckWrites(); }
  void Describe(MetricsSink& sink) const override { inner_->Describe(sink); }

 private:
  const std::unique_ptr<Backend> inner_;
  Calls& calls_;
};

struct CountingOptions {
  std::string label;
};

/// {"type": "counting", "label": ..., "of": {a backend}}; counts by label.
BackendType CountingType(std::map<std::string, Calls>& calls) {
  const auto read = [](BackendReader& reader) -> std::any {
    reader.ReadInner("of");
    return CountingOptions{.label = reader.fields().String("label")};
  };
  const auto open = [&calls](BackendOpener& opener) -> absl::StatusOr<std::unique_ptr<Backend>> {
    const auto options = opener.OptionsAs<CountingOptions>();
    if (!options.ok()) return options.status();
    auto inner = opener.OpenInner("of");
    if (!inner.ok()) return inner.status();
    return std::make_unique<CountingBackend>(*std::move(inner), calls[options->label]);
  };
  return {.name = "counting", .read = read, .open = open};
}

class NestedBackendsTest : public ::testing::Test {
 protected:
  NestedBackendsTest() { types_.Add(CountingType(calls_)); }

  /// A configuration with one backend, `main`.
  absl::StatusOr<Config> Parse(const std::string& main) const {
    return ParseConfig(R"({"data": "store", "backends": {"main": )" + main + "}}", dir_.path(), types_);
  }

  const TempDir dir_;
  std::map<std::string, Calls> calls_;
  BackendTypes types_ = BuiltInBackendTypes();
};

constexpr char kTwoInFrontOfRocksDb[] = R"({"type": "counting", "label": "outer",
    "of": {"type": "counting", "label": "inner", "of": {"type": "rocksdb", "cache_bytes": 1000000}}})";

TEST_F(NestedBackendsTest, EachStandsForAFieldOfTheOneInFront) {
  ASSERT_OK_AND_ASSIGN(const Config config, Parse(kTwoInFrontOfRocksDb));
  EXPECT_EQ(config.store.default_backend, "main");
  const std::vector<PlacedBackend> all = AllBackends(config.store);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(OutermostBackends(config.store).size(), 1u);
  EXPECT_EQ(all[0].path, "backends.main");
  EXPECT_EQ(all[1].path, "backends.main.of");
  EXPECT_EQ(all[2].path, "backends.main.of.of");
  for (const PlacedBackend& backend : all) EXPECT_EQ(backend.name, "main");
  EXPECT_EQ(OptionsOf<CountingOptions>(all[1])->label, "inner");
  EXPECT_EQ(OptionsOf<RocksDbOptions>(all[2])->cache_bytes, 1'000'000u);
}

TEST_F(NestedBackendsTest, CallsGoThroughAllToTheDataBehind) {
  ASSERT_OK_AND_ASSIGN(const Config config, Parse(kTwoInFrontOfRocksDb));
  {
    ASSERT_OK_AND_ASSIGN(const auto store, OpenRouter(config.store, types_));
    EXPECT_EQ(store->keeper().BackendNames(), std::vector<std::string>{"main"});
    ASSERT_OK(store->CreateDataset({.name = "events"}));
    EXPECT_EQ(store->GetDataset("events")->backend, "main");
    const CellWrite cell{"x", "v", 1};
    ASSERT_OK(store->PutRow("events", "r", {&cell, 1}, {}));
  }
  for (const char* label : {"outer", "inner"}) {
    EXPECT_EQ(calls_[label].creates, 1) << label;
    EXPECT_EQ(calls_[label].opens, 1) << label;
  }
  // The engine behind knows its datasets by the name of the outermost backend.
  ASSERT_OK_AND_ASSIGN(const auto store, OpenRouter(config.store, types_));
  ASSERT_OK_AND_ASSIGN(const Row row, store->GetRow("events", "r", {}));
  ASSERT_EQ(row.items.size(), 1u);
  EXPECT_EQ(row.items[0].cells[0].value, "v");
  EXPECT_EQ(calls_["inner"].opens, 2);
}

TEST_F(NestedBackendsTest, APageOfAJoinReadsHardlyMoreThanItHasRoomFor) {
  ASSERT_OK_AND_ASSIGN(const Config config, Parse(kTwoInFrontOfRocksDb));
  ASSERT_OK_AND_ASSIGN(const auto store, OpenRouter(config.store, types_));
  ASSERT_OK(store->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  ASSERT_OK(store->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  const std::string document = R"({"t":")" + std::string(500'000, 'x') + R"("})";
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t pin, store->CreateObject("pins", document, {.shard = 1}));
    ASSERT_OK(store->AddMapping("boards", 1, pin, i));
  }
  ASSERT_OK_AND_ASSIGN(const JoinedPage page, store->ListObjects("boards", 1, {.max_bytes = 1'100'000}));
  EXPECT_EQ(page.objects.size(), 2u);
  // The third object does not fit any more.
  EXPECT_EQ(calls_["outer"].batch_bytes, 3 * document.size());
}

TEST_F(NestedBackendsTest, AFleetBehindAnotherBackendIsFound) {
  ASSERT_OK_AND_ASSIGN(
      const Config config,
      Parse(
          R"({"type": "counting", "label": "a", "of": {"type": "mysql", "user": "u", "zookeeper": "zk:1"}})"));
  ASSERT_NE(FindFleet(config.store), nullptr);
  EXPECT_EQ(FindFleet(config.store)->zookeeper.servers, "zk:1");
  EXPECT_EQ(FindBackendOfType(config.store, kMySql)->name, "main");
  EXPECT_EQ(FindBackendOfType(config.store, kMySql)->path, "backends.main.of");
  EXPECT_FALSE(FindBackendOfType(config.store, kRocksDb));
}

TEST_F(NestedBackendsTest, MistakesAreNamedByTheirPath) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {R"({"type": "counting", "label": "a"})", "config: backends.main.of: missing"},
      {R"({"type": "counting", "label": "a", "of": "mysql"})", "config: backends.main.of: must be an object"},
      {R"({"type": "counting", "label": "a", "of": {}})", "config: backends.main.of.type: missing"},
      {R"({"type": "counting", "label": "a", "of": {"type": 7}})",
       "config: backends.main.of.type: must be a string"},
      {R"({"type": "counting", "label": "a", "of": {"type": "tape"}})",
       "config: backends.main.of.type: 'tape' is not a type of backend; the types are rocksdb, mysql, "
       "remote, "
       "cached, counting"},
      {R"({"type": "counting", "label": "a", "of": {"type": "rocksdb", "path": "p"}})",
       "config: backends.main.of.path: unknown field"},
      {R"({"type": "counting", "label": "a", "off": 1, "of": {"type": "rocksdb"}})",
       "config: backends.main.off: unknown field"},
      {R"({"type": "counting", "label": "a",
           "of": {"type": "counting", "label": "b", "of": {"type": "rocksdb", "wal_bytes": 1}}})",
       "config: backends.main.of.of.wal_bytes: must be a whole number"},
      {R"({"type": "counting", "label": "a", "of": {"type": "rocksdb"}}, "other": {"type": "rocksdb"})",
       "config: backends.other.type: there can be only one backend of type rocksdb"},
      {R"({"type": "rocksdb", "of": {"type": "rocksdb"}})", "config: backends.main.of: unknown field"},
  };
  for (const auto& [main, message] : mistakes) EXPECT_THAT(Parse(main), FailsWith(kInvalid, message)) << main;
}

TEST_F(NestedBackendsTest, OptionsFromCodeAreCheckedToo) {
  const auto refused = [&](std::vector<BackendConfig> backends, const std::string& message) {
    const OpenOptions options{.data = dir_ / "s", .default_backend = "main", .backends = std::move(backends)};
    EXPECT_THAT(OpenRouter(options, types_), FailsWith(kInvalid, message));
  };
  const BackendConfig rocksdb{.name = "main", .type = kRocksDb};
  BackendConfig counting{.name = "main", .type = "counting"};
  refused({{.name = "main", .type = "tape"}}, "config: backends.main.type: 'tape' is not a type of backend");
  refused({{.name = "", .type = kRocksDb}}, "config: backends: a backend needs a name");
  refused({rocksdb, rocksdb}, "config: backends: two backends are named 'main'");
  refused({rocksdb, {.name = "more", .type = kRocksDb}},
          "config: backends.more.type: there can be only one backend of type rocksdb");
  refused({}, "config: backends: needs a backend of type rocksdb, which holds the catalog");
  refused({{.name = "main", .type = kRocksDb, .options = RemoteServer{}}},
          "config: backends.main: its options are not the struct that belongs to type rocksdb");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "s")) << "a store is made by none of these";
  counting.inner.push_back({.name = "off", .type = kRocksDb});
  refused({counting}, "config: backends.main.of: missing; type counting needs a backend there");
  // A type that only this test has added is none of a store that is opened without it.
  EXPECT_THAT(Open({.data = dir_ / "s", .default_backend = "main", .backends = {counting}}),
              FailsWith(kInvalid, "config: backends.main.type: 'counting' is not a type of backend"));
}

}  // namespace
}  // namespace kvstore
