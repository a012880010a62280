#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backend_api/scan_budget.h"
#include "base/fail_point.h"
#include "idgen/object_id.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "shardmap/map_source.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/eventually.h"

/// Objects and mappings: what the suite does not test because it holds for this backend only.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const DatasetSpec kObjects{.name = "pins", .shape = Shape::kObjects, .type = 1};

TEST(Objects, LieWhereTheirIdSays) {
  Opened dataset(kObjects);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, dataset.objects->Create(R"({"title":"Chair"})", {.shard = 9}));
  const std::string local = std::to_string(ObjectId::FromValue(id)->local());
  EXPECT_EQ(SharedFleet().OfShard(9).Run("SELECT data FROM db00009.pins WHERE local_id = " + local),
            "{\"title\":\"Chair\"}\n");
}

TEST(Objects, WithoutAPlaceTheyGoToShardsByWeight) {
  auto options = TestFleet::Options();
  options.weights = {{0, 12, 0}, {13, 13, 1}, {14, 14, 3}, {15, 15, 0}};
  Opened dataset(kObjects, options);
  std::map<uint32_t, int> times;
  for (int i = 0; i < 400; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, dataset.objects->Create("{}", {}));
    ++times[ObjectId::FromValue(id)->shard()];
  }
  EXPECT_EQ(times.size(), 2u);
  EXPECT_GT(times[13], 50);
  EXPECT_GT(times[14], 2 * times[13]);
}

/// A fleet whose map and weights change while it is in use.
class ChangingFleet {
 public:
  ChangingFleet() {
    SetOpen(TestFleet::kShards / 2);
    SetWeights("[]");
  }
  absl::StatusOr<std::unique_ptr<MySqlBackend>> Open() {
    return MySqlBackend::Open({.id = OpenFileSource(dir_ / "id.json"),
                               .mod = OpenFileSource(SharedFleet().Map("mod.json")),
                               .weights = OpenFileSource(dir_ / "weights.json"),
                               .id_cache = dir_ / "cache.json"},
                              TestFleet::Options());
  }
  /// Opens the first so many shards, and no others.
  void SetOpen(uint32_t shards) {
    const uint32_t half = TestFleet::kShards / 2;
    std::string text = fmt::format(R"([{{"range": [0, {}], "master": "{}", "slave": "none1"}})", half - 1,
                                   SharedFleet().server(0).address());
    if (shards > half) {
      text += fmt::format(R"(, {{"range": [{}, {}], "master": "{}", "slave": "none2"}})", half, shards - 1,
                          SharedFleet().server(1).address());
    }
    Write("id.json", text + "]");
  }
  void SetWeights(const std::string& text) { Write("weights.json", text); }

 private:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / (name + ".next")) << text;
    std::filesystem::rename(dir_ / (name + ".next"), dir_ / name);
  }
  const TempDir dir_;
};

TEST(Objects, ARequestMakesOneWhateverChangesInBetween) {
  const Opened dataset(kObjects);
  ChangingFleet fleet;
  auto backend = *fleet.Open();
  auto objects = *backend->OpenObjects(dataset.spec);
  std::map<std::string, uint64_t> made;  // by request_id
  const auto create = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::string request(kRequestIdBytes, 'r');
      request.replace(0, 4, fmt::format("{:04}", made.size()));
      ASSERT_OK_AND_ASSIGN(made[request], objects->Create("{}", {.request_id = request}));
    }
  };
  const auto repeat = [&] {
    for (const auto& [request, id] : made) {
      ASSERT_OK_AND_ASSIGN(const uint64_t again, objects->Create("{}", {.request_id = request}));
      EXPECT_EQ(again, id);
    }
  };
  const auto shards = [&] {
    uint32_t count = 0;
    for (const ShardWeight& one : backend->fleet().spreads().current()->Shards()) {
      count += one.last + 1 - one.first;
    }
    return count;
  };
  create(20);
  fleet.SetOpen(TestFleet::kShards);
  ASSERT_TRUE(Eventually([&] { return shards() == TestFleet::kShards; }));
  repeat();
  create(20);
  fleet.SetWeights(R"([{"range": [0, 3], "weight": 0}])");
  ASSERT_TRUE(Eventually([&] { return shards() == TestFleet::kShards - 4; }));
  repeat();
  create(20);
  // The process is restarted, and finds other weights.
  objects.reset();
  backend.reset();
  fleet.SetWeights(R"([{"range": [0, 9], "weight": 0}])");
  backend = *fleet.Open();
  objects = *backend->OpenObjects(dataset.spec);
  ASSERT_EQ(shards(), TestFleet::kShards - 10);
  repeat();
  // A first attempt does not search earlier shards. (These are retries in fact, so some objects are created
  // again.)
  int others = 0;
  for (const auto& [request, id] : made) {
    const CreateOptions options{.request_id = request, .first_attempt = true};
    ASSERT_OK_AND_ASSIGN(const uint64_t again, objects->Create("{}", options));
    if (again != id) ++others;
  }
  EXPECT_GT(others, 0);
  // New objects are created on the shards that have a weight now.
  for (int i = 0; i < 20; ++i) {
    std::string request(kRequestIdBytes, 'n');
    request.replace(0, 4, fmt::format("{:04}", i));
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.request_id = request}));
    EXPECT_GE(ObjectId::FromValue(id)->shard(), 10u);
  }
  // Shards that the map has no more are not searched.
  objects.reset();
  backend.reset();
  fleet.SetOpen(TestFleet::kShards / 2);
  fleet.SetWeights("[]");
  backend = *fleet.Open();
  objects = *backend->OpenObjects(dataset.spec);
  ASSERT_EQ(shards(), TestFleet::kShards / 2);
  for (int i = 0; i < 20; ++i) {
    std::string request(kRequestIdBytes, 'l');
    request.replace(0, 4, fmt::format("{:04}", i));
    EXPECT_OK(objects->Create("{}", {.request_id = request}));
  }
}

TEST(Objects, TheLastLocalIdIsTheLast) {
  Opened dataset(kObjects);
  MariaDbServer& server = SharedFleet().OfShard(3);
  server.Run("ALTER TABLE db00003.pins AUTO_INCREMENT = " + std::to_string(ObjectId::kMaxLocal));
  ASSERT_OK_AND_ASSIGN(const uint64_t last, dataset.objects->Create(R"({"n":1})", {.shard = 3}));
  EXPECT_EQ(ObjectId::FromValue(last)->local(), ObjectId::kMaxLocal);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(dataset.objects->Create("{}", {.shard = 3}),
                FailsWith(absl::StatusCode::kResourceExhausted, "shard db00003"));
  }
  EXPECT_EQ(dataset.objects->Get(last, {})->data, R"({"n":1})");
  EXPECT_EQ(server.Run("SELECT COUNT(*) FROM db00003.pins"), "1\n");
  // Objects that name no shard are created on others, which are not full.
  for (int i = 0; i < 100; ++i) ASSERT_OK(dataset.objects->Create("{}", {}));
}

TEST(Objects, OfAShardThatIsNotOpenAreInvalid) {
  Opened dataset(kObjects);
  const uint64_t id = ObjectId::Make(900, 1, 5)->value();
  EXPECT_THAT(dataset.objects->Get(id, {}), FailsWith(kInvalid, "object_id: shard 900 is not open"));
  EXPECT_THAT(dataset.objects->Erase(id), FailsWith(kInvalid, "shard 900"));
  EXPECT_THAT(dataset.objects->Create("{}", {.near = id}), FailsWith(kInvalid, "near: shard 900"));
  EXPECT_THAT(dataset.objects->Create("{}", {.shard = 16}), FailsWith(kInvalid, "shard: shard 16"));
  ASSERT_OK_AND_ASSIGN(const uint64_t good, dataset.objects->Create("{}", {}));
  const std::vector<uint64_t> ids = {id, good};
  const auto batch = dataset.objects->GetMany(ids, {});
  EXPECT_THAT(batch[0], FailsWith(kInvalid, "shard 900"));
  EXPECT_OK(batch[1]);
}

TEST(Objects, SixteenThreadsLoseNoUpdate) {
  Opened dataset(kObjects);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, dataset.objects->Create("0", {}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        ASSERT_OK(dataset.objects->Update(id,
                                          [](std::string_view current) -> absl::StatusOr<std::string> {
                                            return std::to_string(std::stoi(std::string(current)) + 1);
                                          },
                                          {}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dataset.objects->Get(id, {})->data, "16000");
}

TEST(Objects, HostileDocumentsComeBackAsTheyWere) {
  Opened dataset(kObjects);
  const std::vector<std::string> texts = {"'; DROP TABLE pins; --", "\"\\`%_?",
                                          std::string("a\0b", 3),   "\xF0\x9F\x93\x8C pin, \xF0\x90\x8D\x88",
                                          "\xEF\xBF\xBF",           "*/ UNION SELECT 1"};
  for (const std::string& text : texts) {
    nlohmann::json json;
    json[text] = text;
    ASSERT_OK_AND_ASSIGN(const uint64_t id, dataset.objects->Create(json.dump(), {}));
    EXPECT_EQ(dataset.objects->Get(id, {})->data, json.dump());
  }
}

TEST(Objects, ALargeBatchIsAnsweredInOrder) {
  Opened dataset(kObjects);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 600; ++i) {
    ids.push_back(*dataset.objects->Create(std::to_string(i), {.shard = i % 2 == 0 ? 0 : uint32_t(i % 16)}));
  }
  const auto objects = dataset.objects->GetMany(ids, {});
  for (int i = 0; i < 600; ++i) EXPECT_EQ(objects[i]->data, std::to_string(i));
}

TEST(Objects, ABatchMayAskForAnObjectMoreThanOnce) {
  Opened dataset(kObjects);
  const std::string document = R"({"title":")" + std::string(100, 'x') + R"("})";
  ASSERT_OK_AND_ASSIGN(const uint64_t one, dataset.objects->Create(document, {.shard = 2}));
  ASSERT_OK_AND_ASSIGN(const uint64_t hidden, dataset.objects->Create(R"({"active":false})", {.shard = 3}));
  const std::vector<uint64_t> ids = {one, hidden, one, hidden, one};
  const auto objects = dataset.objects->GetMany(ids, {});
  for (const size_t place : {0U, 2U, 4U}) {
    EXPECT_EQ(objects[place]->id, one);
    EXPECT_EQ(objects[place]->data, document);
  }
  for (const size_t place : {1U, 3U}) {
    EXPECT_THAT(objects[place], FailsWith(absl::StatusCode::kNotFound, "is deleted"));
  }
}

TEST(Mappings, LieOnTheShardOfFrom) {
  Opened dataset({.name = "board_has_pins", .shape = Shape::kMappings});
  const uint64_t from = ObjectId::Make(12, 2, 7)->value();
  ASSERT_OK(dataset.mappings->Add(from, 99, 1));
  EXPECT_EQ(SharedFleet().OfShard(12).Run("SELECT to_id, sequence FROM db00012.board_has_pins"), "99\t1\n");
  const uint64_t closed = ObjectId::Make(16, 2, 7)->value();
  EXPECT_THAT(dataset.mappings->Add(closed, 99, 1), FailsWith(kInvalid, "from: shard 16 is not open"));
  EXPECT_THAT(dataset.mappings->List(closed, {.limit = 1}), FailsWith(kInvalid, "from: shard 16"));
}

TEST(Mappings, NoStatementCountsOrPassesAllEntries) {
  Opened dataset({.name = "board_has_pins", .shape = Shape::kMappings});
  MariaDbServer& server = SharedFleet().OfShard(0);
  server.Run(
      "INSERT INTO db00000.board_has_pins (from_id, to_id, sequence) SELECT 1, seq, 1000000 - seq FROM " +
      Numbers(1, 200000));
  const auto statements = [&] { return SumOfStatus(server, "'Com_stmt_execute'"); };
  const uint64_t before = statements();
  EXPECT_EQ(*dataset.mappings->Count(1), 200'000u);
  EXPECT_GE(statements() - before, 4u);
  const uint64_t counted = statements();
  const auto listed = dataset.mappings->List(1, {.limit = 2, .offset = 150'000});
  ASSERT_OK(listed);
  EXPECT_EQ(listed->entries[0].to, 50'000u);
  EXPECT_EQ(listed->entries[1].to, 49'999u);
  EXPECT_TRUE(listed->more);
  EXPECT_GE(statements() - counted, 3u);
  EXPECT_EQ(dataset.mappings->List(1, {.descending = true, .limit = 2, .offset = 199'999})->entries[0].to,
            200'000u);
  EXPECT_TRUE(dataset.mappings->List(1, {.limit = 2, .offset = 200'000})->entries.empty());
}

/// Cancels a call when it reaches a point, and counts how often it does.
class CancelsAt {
 public:
  explicit CancelsAt(const std::string& point) {
    SetFailPointHook([this, point](std::string_view reached) {
      if (reached != point) return;
      ++count_;
      cancelled_ = true;
    });
  }
  ~CancelsAt() { SetFailPointHook(nullptr); }
  CancelsAt(const CancelsAt&) = delete;
  CancelsAt& operator=(const CancelsAt&) = delete;

  CallLimits limits() const { return {.cancelled = &cancelled_}; }
  int count() const { return count_; }

 private:
  std::atomic<bool> cancelled_{false};
  std::atomic<int> count_{0};
};

TEST(Mappings, ACountAndAnOffsetEndWithTheirCaller) {
  Opened dataset({.name = "board_has_pins", .shape = Shape::kMappings});
  SharedFleet().OfShard(0).Run(
      "INSERT INTO db00000.board_has_pins (from_id, to_id, sequence) SELECT 1, seq, seq FROM " +
      Numbers(1, 300000));
  const auto cancelled = FailsWith(absl::StatusCode::kCancelled, "");
  {
    const CancelsAt counted("mapping.counted");
    const CallScope scope(counted.limits());
    EXPECT_THAT(dataset.mappings->Count(1), cancelled);
    EXPECT_EQ(counted.count(), 1) << "of five statements";
  }
  for (const bool descending : {false, true}) {
    const CancelsAt passed("mapping.passed");
    const CallScope scope(passed.limits());
    EXPECT_THAT(dataset.mappings->List(1, {.descending = descending, .limit = 2, .offset = 290'000}),
                cancelled);
    EXPECT_EQ(passed.count(), 1) << "of four statements";
  }
  EXPECT_EQ(*dataset.mappings->Count(1), 300'000u);
}

TEST(Mappings, APageReadsWhatItReturnsAndNoMore) {
  auto options = TestFleet::Options();
  options.pool.max_connections = 1;
  Opened dataset({.name = "board_has_pins", .shape = Shape::kMappings}, options);
  MariaDbServer& server = SharedFleet().OfShard(0);
  server.Run("INSERT INTO db00000.board_has_pins SELECT 1, seq, seq * 10 FROM " + Numbers(1, 20000));
  const auto read = [&] {
    return SumOfStatus(server,
                       "'Handler_read_first', 'Handler_read_key', 'Handler_read_last', 'Handler_read_next', "
                       "'Handler_read_prev', 'Handler_read_rnd'");
  };
  const uint64_t idle = read();
  const uint64_t of_asking = read() - idle;
  for (const bool descending : {false, true}) {
    for (const bool from_a_marker : {false, true}) {
      kvstore::MappingQuery query{.descending = descending, .limit = 50};
      if (from_a_marker) query.after = MappingEntry{.to = 10'000, .sequence = 100'000};
      const uint64_t before = read();
      ASSERT_EQ(dataset.mappings->List(1, query)->entries.size(), 50u);
      EXPECT_LE(read() - before - of_asking, 55u);
    }
  }
}

TEST(Objects, PartitionsHaveEquallyManyShards) {
  Opened dataset(kObjects);
  ASSERT_OK_AND_ASSIGN(const auto partitions, dataset.objects->Partitions(4));
  ASSERT_EQ(partitions.size(), 4u);
  const uint32_t shards = TestFleet::kShards / 4;
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(partitions[i].ids.start, ObjectId::ValueOf(i * shards, 0, 0));
    EXPECT_EQ(partitions[i].name, fmt::format("db{:05} and following", i * shards));
  }
  EXPECT_EQ(dataset.objects->Partitions(1000)->size(), TestFleet::kShards);
}

TEST(Objects, AScanOfManyEmptyShardsPausesBetweenThem) {
  Opened dataset(kObjects);
  ASSERT_OK_AND_ASSIGN(const uint64_t id, dataset.objects->Create("{}", {.shard = 15}));
  std::vector<uint32_t> shards;
  IdRange range;
  for (;;) {
    const ScanBudget budget(5'000);
    ASSERT_OK_AND_ASSIGN(const ObjectScanPage page, dataset.objects->Scan(range, {}));
    if (!page.next) {
      ASSERT_EQ(page.objects.size(), 1u);
      EXPECT_EQ(page.objects[0].id, id);
      break;
    }
    EXPECT_TRUE(page.objects.empty());
    shards.push_back(ObjectId::ShardOf(*page.next));
    range.start = *page.next;
  }
  // A statement counts as about a thousand objects.
  EXPECT_EQ(shards, (std::vector<uint32_t>{5, 10, 15}));
}

TEST(Objects, AScanHasTheShardsThatAreOpen) {
  ChangingFleet fleet;
  ASSERT_OK_AND_ASSIGN(const auto backend, fleet.Open());
  Opened all(kObjects);
  for (const uint32_t shard : {0, 7, 8, 15}) ASSERT_OK(all.objects->Create("{}", {.shard = shard}));
  ASSERT_OK_AND_ASSIGN(const auto objects, backend->OpenObjects(all.spec));
  ASSERT_OK_AND_ASSIGN(const ObjectScanPage page, objects->Scan({}, {}));
  EXPECT_EQ(page.objects.size(), 2u);
  EXPECT_FALSE(page.next);
}

}  // namespace
}  // namespace kvstore::testing
