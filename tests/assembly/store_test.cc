#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "idgen/object_id.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/open.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The store as its users call it: what the router adds to the backend.
namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Reopen();
    ASSERT_OK(store_->CreateDataset({.name = "rows"}));
    ASSERT_OK(store_->CreateDataset({.name = "pins", .shape = Shape::kObjects, .type = 7}));
    ASSERT_OK(store_->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  }

  void Reopen() {
    store_.reset();
    auto opened = Open({.data = dir_ / "s"});
    ASSERT_OK(opened);
    store_ = *std::move(opened);
  }

  absl::Status PutCell(std::string_view row, std::string_view column, std::string_view value) {
    const CellWrite cell{column, value, 1};
    return store_->PutRow("rows", row, {&cell, 1}, {}).status();
  }

  const testing::TempDir dir_;
  std::unique_ptr<KVStore> store_;
};

TEST_F(StoreTest, UnknownDatasetsAndOtherShapesAreRefused) {
  const CellWrite cell{"x", "v", 1};
  EXPECT_THAT(store_->GetRow("none", "r", {}), FailsWith(kNotFound, "dataset: there is none named 'none'"));
  EXPECT_THAT(store_->PutRow("none", "r", {&cell, 1}, {}), FailsWith(kNotFound, "'none'"));
  EXPECT_THAT(store_->DropDataset("none", {}), FailsWith(kNotFound, "'none'"));
  EXPECT_THAT(store_->AlterDataset("none", {.ttl_ms = 1}), FailsWith(kNotFound, "'none'"));
  EXPECT_THAT(store_->GetRow("pins", "r", {}),
              FailsWith(kPrecondition, "'pins' holds objects, this call is for rows"));
  EXPECT_THAT(store_->GetObject("rows", 1, {}), FailsWith(kPrecondition, "'rows' holds rows"));
  EXPECT_THAT(store_->CountMapping("pins", 1), FailsWith(kPrecondition, "'pins' holds objects"));
  EXPECT_THAT(store_->ScanObjects("rows", {}, {}), FailsWith(kPrecondition, "'rows' holds rows"));
  EXPECT_THAT(store_->ScanMappings("pins", {}, {}), FailsWith(kPrecondition, "'pins' holds objects"));
}

TEST_F(StoreTest, DatasetsAreCreatedOnce) {
  EXPECT_THAT(store_->CreateDataset({.name = "rows"}),
              FailsWith(absl::StatusCode::kAlreadyExists, "'rows' exists"));
  EXPECT_THAT(store_->CreateDataset({.name = "more", .shape = Shape::kObjects, .type = 7}),
              FailsWith(absl::StatusCode::kAlreadyExists, "type: 7 is the type number of another dataset"));
  EXPECT_THAT(store_->CreateDataset({.name = "more", .backend = "mysql"}),
              FailsWith(kInvalid, "backend: there is none named 'mysql', only 'rocksdb'"));
  EXPECT_THAT(store_->CreateDataset({.name = "more", .ttl_ms = kMaxTimestamp + 1}),
              FailsWith(kInvalid, "ttl_ms"));
  EXPECT_EQ(store_->ListDatasets()->size(), 3u);
  EXPECT_THAT(store_->AlterDataset("rows", {}), FailsWith(kInvalid, "at least one of"));
  EXPECT_THAT(store_->AlterDataset("pins", {.max_versions = 3}), FailsWith(kInvalid, "max_versions"));
}

TEST_F(StoreTest, TypeNumbersAreTheLowestFreeOnes) {
  ASSERT_OK(store_->CreateDataset({.name = "a", .shape = Shape::kObjects}));
  ASSERT_OK(store_->CreateDataset({.name = "b", .shape = Shape::kObjects}));
  EXPECT_EQ(store_->GetDataset("a")->type, 1u);
  EXPECT_EQ(store_->GetDataset("b")->type, 2u);
}

TEST_F(StoreTest, MarkersContinueReadsAndAreRefusedElsewhere) {
  for (int i = 0; i < 5; ++i) ASSERT_OK(PutCell("r", "c" + std::to_string(i), "v"));
  ASSERT_OK(PutCell("r2", "c", "v"));
  ASSERT_OK_AND_ASSIGN(const Row first, store_->GetRow("rows", "r", {.limit = 2}));
  ASSERT_FALSE(first.marker.empty());
  ASSERT_OK_AND_ASSIGN(const Row second, store_->GetRow("rows", "r", {.limit = 3, .marker = first.marker}));
  ASSERT_EQ(second.items.size(), 3u);
  EXPECT_EQ(second.items[0].column, "c2");
  EXPECT_TRUE(second.marker.empty());
  EXPECT_THAT(store_->GetRow("rows", "r2", {.marker = first.marker}), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(store_->GetRow("rows", "r", {.marker = "tampered"}), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(store_->ScanRows("rows", {}, {.marker = first.marker}), FailsWith(kInvalid, "marker"));
  // The marker is from a dataset of the same name that was dropped.
  ASSERT_OK(store_->DropDataset("rows", {}));
  ASSERT_OK(store_->CreateDataset({.name = "rows"}));
  EXPECT_THAT(store_->GetRow("rows", "r", {.marker = first.marker}), FailsWith(kInvalid, "marker"));
}

TEST_F(StoreTest, ScansGoOnByMarkerAlsoAfterARestart) {
  for (int i = 0; i < 5; ++i) ASSERT_OK(PutCell("r" + std::to_string(i), "x", "v"));
  std::string marker;
  {
    ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("rows", {"r1", ""}, {}));
    EXPECT_EQ(cursor->marker(), "");
    ScannedRow row;
    ASSERT_TRUE(*cursor->Next(row));
    ASSERT_TRUE(*cursor->Next(row));
    marker = cursor->marker();
  }
  Reopen();
  ASSERT_OK_AND_ASSIGN(const auto cursor, store_->ScanRows("rows", {"r1", ""}, {.marker = marker}));
  ScannedRow row;
  ASSERT_TRUE(*cursor->Next(row));
  EXPECT_EQ(row.key, "r3");
  // A marker that lies outside the range is of another scan.
  EXPECT_THAT(store_->ScanRows("rows", {"r4", ""}, {.marker = marker}), FailsWith(kInvalid, "marker"));
}

TEST_F(StoreTest, BatchesAnswerEachRowAndRefuseTheirSize) {
  const CellWrite cell{"x", "v", 1};
  const std::vector<RowWrite> writes = {{"a", {&cell, 1}, {}}, {"", {&cell, 1}, {}}, {"b", {}, {}}};
  ASSERT_OK_AND_ASSIGN(const auto puts, store_->PutRows("rows", writes));
  EXPECT_OK(puts[0]);
  EXPECT_THAT(puts[1], FailsWith(kInvalid, "row"));
  EXPECT_THAT(puts[2], FailsWith(kInvalid, "items"));
  const std::vector<RowRead> reads = {
      {"b", {}}, {std::string(1025, 'x'), {}}, {"a", {.marker = "bad"}}, {"a", {}}};
  ASSERT_OK_AND_ASSIGN(const auto gets, store_->GetRows("rows", reads));
  EXPECT_TRUE(gets[0]->items.empty());
  EXPECT_THAT(gets[1], FailsWith(kInvalid, "row"));
  EXPECT_THAT(gets[2], FailsWith(kInvalid, "marker"));
  EXPECT_EQ(gets[3]->items.size(), 1u);
  EXPECT_THAT(store_->GetRows("rows", {}), FailsWith(kInvalid, "batch: 0 entries"));
  EXPECT_THAT(store_->PutRows("rows", std::vector<RowWrite>(10'001)),
              FailsWith(kInvalid, "batch: 10001 entries"));
  EXPECT_THAT(store_->DeleteRows("rows", std::vector<RowDelete>(10'001)),
              FailsWith(kInvalid, "batch: 10001"));
  EXPECT_THAT(store_->ListPartitions("rows", 0), FailsWith(kInvalid, "1..65536"));
}

TEST_F(StoreTest, AFailedPutLeavesNothing) {
  ASSERT_OK(PutCell("r", "x", "before"));
  const std::vector<CellWrite> cells = {{"y", "1", 1}, {"x", "1", kMaxTimestamp + 1}};
  EXPECT_THAT(store_->PutRow("rows", "r", cells, {}), FailsWith(kInvalid, "timestamp"));
  EXPECT_EQ(store_->GetRow("rows", "r", {})->items.size(), 1u);
}

TEST_F(StoreTest, ObjectsAreCheckedAndPatched) {
  EXPECT_THAT(store_->CreateObject("pins", "[]", {}), FailsWith(kInvalid, "object"));
  EXPECT_THAT(store_->CreateObject("pins", "{", {}), FailsWith(kInvalid, ""));
  EXPECT_THAT(store_->CreateObject("pins", "{}", {.near = kMaxId + 1}), FailsWith(kInvalid, "near"));
  EXPECT_THAT(store_->CreateObject("pins", "{}", {.shard = 65536}), FailsWith(kInvalid, "shard"));
  EXPECT_THAT(store_->CreateObject("pins", "{}", {.near = 1ULL << 37, .shard = 1}),
              FailsWith(kInvalid, "near, shard"));
  ASSERT_OK_AND_ASSIGN(const uint64_t id, store_->CreateObject("pins", R"({"a":{"b":1,"c":2},"d":3})", {}));
  // The example's rules of RFC 7396: null removes, objects merge, all else replaces.
  ASSERT_OK_AND_ASSIGN(const Object patched,
                       store_->PatchObject("pins", id, R"({"a":{"b":null,"e":[1]},"d":4})", {}));
  EXPECT_EQ(patched.data, R"({"a":{"c":2,"e":[1]},"d":4})");
  EXPECT_THAT(store_->PatchObject("pins", id, "7", {}), FailsWith(kInvalid, "object"));
  EXPECT_THAT(store_->UpdateObject("pins", id,
                                   [](std::string_view) { return absl::StatusOr<std::string>("[]"); }, {}),
              FailsWith(kInvalid, "object"));
  EXPECT_EQ(store_->GetObject("pins", id, {})->data, patched.data);
}

TEST_F(StoreTest, ObjectIdsOfAnotherTypeAreRefused) {
  const uint64_t other = ObjectId::Make(1, 8, 1)->value();
  EXPECT_THAT(store_->GetObject("pins", other, {}), FailsWith(kInvalid, "object_id"));
  EXPECT_THAT(store_->GetObject("pins", 5, {}), FailsWith(kInvalid, "object_id"));
  EXPECT_THAT(store_->GetObject("pins", kMaxId + 1, {}), FailsWith(kInvalid, "object_id"));
  EXPECT_THAT(store_->DeleteObject("pins", other, true), FailsWith(kInvalid, "object_id"));
  const std::vector<uint64_t> ids = {other, ObjectId::Make(1, 7, 1)->value()};
  ASSERT_OK_AND_ASSIGN(const auto objects, store_->GetObjects("pins", ids, {}));
  EXPECT_THAT(objects[0], FailsWith(kInvalid, ""));
  EXPECT_THAT(objects[1], FailsWith(kNotFound, ""));
}

TEST_F(StoreTest, SoftDeletesHideAndHardDeletesRemove) {
  ASSERT_OK_AND_ASSIGN(const uint64_t id, store_->CreateObject("pins", R"({"a":1})", {}));
  ASSERT_OK(store_->DeleteObject("pins", id, false));
  ASSERT_OK(store_->DeleteObject("pins", id, false));
  EXPECT_THAT(store_->GetObject("pins", id, {}), FailsWith(kNotFound, ""));
  EXPECT_EQ(store_->GetObject("pins", id, {.include_inactive = true})->data, R"({"a":1,"active":false})");
  ASSERT_OK(store_->DeleteObject("pins", id, true));
  EXPECT_THAT(store_->GetObject("pins", id, {.include_inactive = true}), FailsWith(kNotFound, ""));
  EXPECT_THAT(store_->DeleteObject("pins", id, true), FailsWith(kNotFound, ""));
}

TEST_F(StoreTest, MappingsArePagedAndChecked) {
  for (uint64_t to = 1; to <= 5; ++to) ASSERT_OK(store_->AddMapping("boards", 9, to, to * 10));
  ASSERT_OK_AND_ASSIGN(const MappingPage first, store_->ListMapping("boards", 9, {.limit = 2}));
  EXPECT_EQ(first.entries.size(), 2u);
  ASSERT_OK_AND_ASSIGN(const MappingPage second,
                       store_->ListMapping("boards", 9, {.limit = 3, .marker = first.marker}));
  EXPECT_EQ(second.entries[0].to, 3u);
  EXPECT_EQ(second.marker, "");
  EXPECT_THAT(store_->ListMapping("boards", 8, {.marker = first.marker}), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(store_->ListMapping("boards", 9,
                                  {.order = MappingListOptions::Order::kDescending, .marker = first.marker}),
              FailsWith(kInvalid, "marker"));
  EXPECT_THAT(store_->ListMapping("boards", 9, {.limit = 0}), FailsWith(kInvalid, "limit"));
  EXPECT_THAT(store_->AddMapping("boards", kMaxId + 1, 1, 1), FailsWith(kInvalid, "from"));
  EXPECT_THAT(store_->AddMapping("boards", 1, kMaxId + 1, 1), FailsWith(kInvalid, "to"));
  EXPECT_THAT(store_->AddMapping("boards", 1, 1, kMaxTimestamp + 1), FailsWith(kInvalid, "sequence"));
  EXPECT_THAT(store_->RemoveMapping("boards", kMaxId + 1, 1), FailsWith(kInvalid, "from"));
  EXPECT_THAT(store_->CountMapping("boards", kMaxId + 1), FailsWith(kInvalid, "from"));
}

TEST_F(StoreTest, ScansOfObjectsArePagedAndChecked) {
  std::vector<uint64_t> ids;
  for (uint32_t shard = 0; shard < 5; ++shard) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, store_->CreateObject("pins", "{}", {.shard = shard}));
    ids.push_back(id);
  }
  ASSERT_OK_AND_ASSIGN(const ObjectPage first, store_->ScanObjects("pins", {}, {.limit = 2}));
  ASSERT_EQ(first.objects.size(), 2u);
  EXPECT_EQ(first.objects[1].id, ids[1]);
  // A scan goes on after a restart, also if the object that follows the page is gone.
  ASSERT_OK(store_->DeleteObject("pins", ids[2], true));
  Reopen();
  ASSERT_OK_AND_ASSIGN(const ObjectPage second, store_->ScanObjects("pins", {}, {.marker = first.marker}));
  ASSERT_EQ(second.objects.size(), 2u);
  EXPECT_EQ(second.objects[0].id, ids[3]);
  EXPECT_EQ(second.objects[1].id, ids[4]);
  EXPECT_EQ(second.marker, "");
  EXPECT_THAT(store_->ScanObjects("pins", {ids[3], ids[4]}, {.marker = first.marker}),
              FailsWith(kInvalid, "outside of start_id"));
  const std::string changed = first.marker + "x";
  EXPECT_THAT(store_->ScanObjects("pins", {}, {.marker = changed}), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(store_->ScanMappings("boards", {}, {.marker = first.marker}), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(store_->ScanObjects("pins", {}, {.limit = 0}), FailsWith(kInvalid, "limit"));
  EXPECT_THAT(store_->ScanObjects("pins", {2, 1}, {}), FailsWith(kInvalid, "start_id"));
  ASSERT_OK(store_->CreateDataset({.name = "others", .shape = Shape::kObjects}));
  EXPECT_THAT(store_->ScanObjects("others", {}, {.marker = first.marker}), FailsWith(kInvalid, "marker"));
}

TEST_F(StoreTest, AScanThatFindsNothingEndsItsPagesEarly) {
  ASSERT_OK_AND_ASSIGN(const uint64_t first, store_->CreateObject("pins", "{}", {.shard = 0}));
  constexpr int kHidden = 70'000;
  for (int i = 0; i < kHidden; ++i) {
    ASSERT_OK(store_->CreateObject("pins", R"({"active":false})", {.shard = 1}));
  }
  ASSERT_OK_AND_ASSIGN(const uint64_t last, store_->CreateObject("pins", "{}", {.shard = 2}));
  ObjectScanOptions options;
  ASSERT_OK_AND_ASSIGN(const ObjectPage page, store_->ScanObjects("pins", {first + 1, kMaxId}, options));
  EXPECT_TRUE(page.objects.empty());
  ASSERT_NE(page.marker, "");
  options.marker = page.marker;
  ASSERT_OK_AND_ASSIGN(const ObjectPage rest, store_->ScanObjects("pins", {first + 1, kMaxId}, options));
  ASSERT_EQ(rest.objects.size(), 1u);
  EXPECT_EQ(rest.objects[0].id, last);
  // The caller's limits hold within a page, too.
  std::atomic<bool> cancelled = true;
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  EXPECT_THAT(store_->ScanObjects("pins", {}, {}), FailsWith(absl::StatusCode::kCancelled, ""));
}

TEST_F(StoreTest, ScansOfMappingsArePagedAndChecked) {
  for (uint64_t from = 1; from <= 3; ++from) {
    for (uint64_t to = 1; to <= 2; ++to) ASSERT_OK(store_->AddMapping("boards", from, to, 10 - to));
  }
  ASSERT_OK_AND_ASSIGN(const ScannedMappingPage first, store_->ScanMappings("boards", {}, {.limit = 3}));
  EXPECT_EQ(first.entries, (std::vector<ScannedMapping>{{1, 1, 9}, {1, 2, 8}, {2, 1, 9}}));
  // A new sequence makes no entry come twice, or not at all.
  ASSERT_OK(store_->AddMapping("boards", 2, 2, 1));
  ASSERT_OK(store_->AddMapping("boards", 2, 1, 50));
  ASSERT_OK_AND_ASSIGN(const ScannedMappingPage second,
                       store_->ScanMappings("boards", {}, {.marker = first.marker}));
  EXPECT_EQ(second.entries, (std::vector<ScannedMapping>{{2, 2, 1}, {3, 1, 9}, {3, 2, 8}}));
  EXPECT_EQ(second.marker, "");
  EXPECT_THAT(store_->ScanMappings("boards", {0, 2}, {.marker = first.marker}),
              FailsWith(kInvalid, "marker"));
  EXPECT_THAT(store_->ScanMappings("boards", {}, {.limit = 10'001}), FailsWith(kInvalid, "limit"));
  EXPECT_THAT(store_->ScanMappings("none", {}, {}), FailsWith(kNotFound, "'none'"));
}

TEST_F(StoreTest, DatasetsOfAllShapesHavePartitions) {
  for (const char* dataset : {"rows", "pins", "boards"}) {
    ASSERT_OK_AND_ASSIGN(const auto partitions, store_->ListPartitions(dataset, 4));
    ASSERT_FALSE(partitions.empty());
    EXPECT_EQ(partitions.front().ids.start, 0u);
    EXPECT_EQ(partitions.back().ids.end, kMaxId + 1);
  }
  EXPECT_THAT(store_->ListPartitions("pins", 0), FailsWith(kInvalid, "1..65536"));
  EXPECT_THAT(store_->ListPartitions("none", 4), FailsWith(kNotFound, "'none'"));
}

TEST_F(StoreTest, TheJoinFetchesObjectsInTheOrderOfTheMapping) {
  ASSERT_OK(store_->CreateDataset({.name = "users", .shape = Shape::kObjects, .type = 8}));
  ASSERT_OK_AND_ASSIGN(const uint64_t board, store_->CreateObject("pins", R"({"board":1})", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t pin, store_->CreateObject("pins", R"({"pin":1})", {}));
  ASSERT_OK_AND_ASSIGN(const uint64_t user, store_->CreateObject("users", R"({"user":1})", {}));
  const uint64_t unknown_type = ObjectId::Make(1, 99, 1)->value();
  ASSERT_OK(store_->AddMapping("boards", board, user, 1));
  ASSERT_OK(store_->AddMapping("boards", board, unknown_type, 2));
  ASSERT_OK(store_->AddMapping("boards", board, pin, 3));
  ASSERT_OK_AND_ASSIGN(const JoinedPage page, store_->ListObjects("boards", board, {}));
  ASSERT_EQ(page.objects.size(), 3u);
  EXPECT_EQ(page.objects[0].object->data, R"({"user":1})");
  EXPECT_FALSE(page.objects[1].object.ok());
  EXPECT_EQ(page.objects[2].object->data, R"({"pin":1})");
  EXPECT_EQ(page.objects[2].entry.sequence, 3u);
}

TEST_F(StoreTest, ThePagesOfAJoinHaveEachObjectOnceWhateverABatchHasRoomFor) {
  // Together they exceed the 64 MiB of a batch of reads, and the store reads them in ascending order.
  const std::string small = R"({"t":"x"})";
  const std::string large = R"({"t":")" + std::string(2 << 20, 'x') + R"("})";
  constexpr uint64_t kObjects = 40;
  for (uint64_t i = 0; i < kObjects; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t pin,
                         store_->CreateObject("pins", i < 35 ? large : small, {.shard = 1}));
    ASSERT_OK(store_->AddMapping("boards", 1, pin, i));
  }
  for (const size_t max_bytes : {size_t{1}, size_t{5} << 20, kMaxPageBytes}) {
    for (const auto order : {MappingListOptions::Order::kDescending, MappingListOptions::Order::kAscending}) {
      MappingListOptions options{.order = order, .max_bytes = max_bytes};
      uint64_t objects = 0;
      do {
        ASSERT_OK_AND_ASSIGN(const JoinedPage page, store_->ListObjects("boards", 1, options));
        ASSERT_FALSE(page.objects.empty());
        size_t bytes = 0;
        for (const JoinedObject& joined : page.objects) {
          const bool descends = order == MappingListOptions::Order::kDescending;
          EXPECT_EQ(joined.entry.sequence, descends ? kObjects - 1 - objects : objects);
          ++objects;
          ASSERT_OK(joined.object);
          EXPECT_EQ(joined.object->id, joined.entry.to);
          bytes += joined.object->data.size();
        }
        EXPECT_TRUE(bytes <= max_bytes || page.objects.size() == 1) << bytes;
        options.marker = page.marker;
      } while (!options.marker.empty());
      EXPECT_EQ(objects, kObjects);
    }
  }
}

TEST_F(StoreTest, DatasetsComeAndGoWhileOthersServe) {
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::thread reader([&] {
    while (!stop) {
      if (!PutCell("r", "x", "v").ok() || !store_->GetRow("rows", "r", {}).ok()) ++failures;
      // The dataset that comes and goes: any answer but a crash.
      store_->GetRow("passing", "r", {}).status().IgnoreError();
    }
  });
  for (int i = 0; i < 30; ++i) {
    EXPECT_OK(store_->CreateDataset({.name = "passing"}));
    EXPECT_OK(store_->AlterDataset("passing", {.max_versions = 3}));
    EXPECT_OK(store_->DropDataset("passing", {}));
  }
  stop = true;
  reader.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(StoreTest, ACompactionThatADropHasCrossedSaysSo) {
  ASSERT_OK(PutCell("r", "x", "v"));
  const auto drop = [&](uint64_t, uint64_t) {
    if (store_->GetDataset("rows").ok()) {
      EXPECT_OK(store_->DropDataset("rows", {}));
    }
    return true;
  };
  EXPECT_THAT(store_->Compact("rows", drop), FailsWith(kNotFound, "it was dropped, or has left this store"));
}

TEST_F(StoreTest, ADatasetIsDroppedWhileItIsWrittenTo) {
  // RocksDB takes a write to a family that is gone for damage, and would refuse all others from then on.
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::vector<std::thread> writers;
  const auto expect = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    if (status.ok()) ++written;
  };
  for (int writer = 0; writer < 6; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; !stop; ++i) {
        const std::string row = std::to_string(i % 100);
        const CellWrite cell{"c", row, std::nullopt};
        switch (writer) {
          case 0:
          case 1:
            expect(store_->PutRow("going", row, {&cell, 1}, {}).status());
            break;
          case 2:
            expect(store_->DeleteRow("going", row, {}));
            break;
          case 3:
            expect(store_->CreateObject("going-pins", "{}", {}).status());
            break;
          case 4:
            expect(store_->AddMapping("going-boards", 1 + i % 10, 2, std::nullopt));
            break;
          default: {
            const absl::Status status = store_->SetConsumer("going", "search", kChangesFromNow);
            EXPECT_TRUE(status.ok() || absl::IsNotFound(status) || absl::IsFailedPrecondition(status))
                << status;
          }
        }
      }
    });
  }
  for (int i = 0; i < 40; ++i) {
    ASSERT_OK(store_->CreateDataset({.name = "going", .keep_changes_ms = i % 2 == 0 ? 60'000u : 0u}));
    ASSERT_OK(store_->CreateDataset({.name = "going-pins", .shape = Shape::kObjects, .type = 9}));
    ASSERT_OK(store_->CreateDataset({.name = "going-boards", .shape = Shape::kMappings}));
    const int enough = written + 20 * (i % 5);
    while (written < enough) std::this_thread::yield();
    if (i % 4 == 0) {
      ASSERT_OK(store_->AlterDataset("going", {.keep_changes_ms = 0}));
    }
    for (const char* name : {"going", "going-pins", "going-boards"}) ASSERT_OK(store_->DropDataset(name, {}));
    ASSERT_OK(PutCell("r", "c", "v")) << "others are written to";
  }
  stop = true;
  for (std::thread& thread : writers) thread.join();
  Reopen();
  EXPECT_THAT(store_->GetRow("going", "1", {}), FailsWith(kNotFound, "'going'"));
  ASSERT_OK(PutCell("r", "c", "v"));
}

}  // namespace
}  // namespace kvstore
