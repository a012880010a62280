#include "tests/backend_suite/migration_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/outcome.h"
#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "base/clock.h"
#include "idgen/object_id.h"
#include "tests/support/eventually.h"

/// The states of a dataset in a migration, on either side: what each refuses, how a target is filled and then
/// serves, and who may change anything.
namespace kvstore::testing {
namespace {

using State = EndpointState;

TEST_P(MigrationSuite, BehindARefusedWriteOfABatchNoneOfTheSameRowIsCarriedOut) {
  const auto rows = Rows(1);
  const WorkerEndpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  std::atomic<bool> stop{false};
  // A cutover that backs out holds the writes and releases them, over and over.
  std::thread freezer([&] {
    while (!stop) {
      EXPECT_OK(endpoint.TransitionTo(State::kFrozen, true));
      EXPECT_OK(endpoint.TransitionTo(State::kServing, true));
    }
  });
  const CellWrite cell{"c", "v", std::nullopt};
  const std::vector<RowWrite> writes(3'000, {"r", {&cell, 1}, {}});
  const std::vector<RowDelete> deletes(300, {"r", {}});
  bool cut = false;
  // Checks that results before the first refusal were carried out, and that all after it are refusals.
  const auto check = [&](const std::vector<absl::Status>& results) {
    const auto first = std::find_if(results.begin(), results.end(), IsMigrating);
    EXPECT_TRUE(std::all_of(first, results.end(), IsMigrating));
    cut = cut || (first != results.begin() && first != results.end());
  };
  for (int i = 0; i < 100 || (GetParam().name.starts_with("RocksDb") && !cut && i < 5'000); ++i) {
    std::vector<absl::Status> put;
    for (const auto& result : rows->PutMany(writes)) put.push_back(result.status());
    check(put);
    check(rows->DeleteMany(deletes));
    if (HasFailure() || (cut && i > 10)) break;
  }
  stop = true;
  freezer.join();
  EXPECT_TRUE(cut || !GetParam().name.starts_with("RocksDb"));
}

TEST_P(MigrationSuite, EachStateRefusesWhatItForbidsAndIsKept) {
  auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "r", "c", "v", 1));
  auto endpoint = std::make_unique<WorkerEndpoint>(backend(), spec());
  const auto reads = [&] { return rows->Get("r", {}, std::nullopt).status(); };
  const auto writes = [&] { return PutCell(*rows, "r", "c", "w", 1); };
  const auto expect = [&](bool readable, bool writable, const char* state) {
    for (const bool reopened : {false, true}) {
      EXPECT_EQ(reads().ok(), readable) << state << reads();
      EXPECT_EQ(writes().ok(), writable) << state << writes();
      EXPECT_EQ(IsMigrating(reads()), !readable) << reads();
      if (!writable) {
        EXPECT_TRUE(IsMigrating(writes())) << writes();
        EXPECT_TRUE(IsMigrating(rows->Delete("r", {}))) << state;
        const CellWrite cell{"c", "w", std::nullopt};
        const RowWrite write{"r", {&cell, 1}, {}};
        EXPECT_TRUE(IsMigrating(rows->PutMany({&write, 1})[0].status())) << state;
      }
      if (reopened) break;
      rows.reset();
      endpoint.reset();
      Reopen();
      rows = *backend().OpenRows(spec());
      endpoint = nullptr;
    }
  };
  uint64_t epoch = 20;
  const auto enter = [&](State state, bool capture) {
    const auto fresh = *backend().OpenForMigration(spec());
    EXPECT_OK(fresh->RaiseEpoch(++epoch));
    EXPECT_OK(fresh->TransitionTo(epoch, state, capture));
    EXPECT_OK(fresh->TransitionTo(epoch, state, capture)) << "a sweep is repeated";
    const auto status = fresh->Status();
    EXPECT_OK(status);
    EXPECT_TRUE(status.ok() && status->All(state));
  };
  enter(State::kServing, true);
  expect(true, true, "serving");
  enter(State::kFrozen, true);
  expect(true, false, "frozen");
  enter(State::kServing, true);
  expect(true, true, "serving again");
  enter(State::kFrozen, true);
  enter(State::kMoved, true);
  expect(false, false, "moved");
  enter(State::kServing, true);
  expect(true, true, "back");
  enter(State::kServing, false);
  expect(true, true, "plain");
  EXPECT_EQ(Read(*rows, "r"), "c@1=w");
}

TEST_P(MigrationSuite, OnlyLegalWaysAreGone) {
  Rows();
  const WorkerEndpoint endpoint(backend(), spec());
  const auto refused = FailsWith(absl::StatusCode::kFailedPrecondition, "");
  EXPECT_THAT(endpoint.TransitionTo(State::kFrozen, true), refused) << "the last writes would be in no log";
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  EXPECT_THAT(endpoint.TransitionTo(State::kMoved, true), refused);
  EXPECT_THAT(endpoint.TransitionTo(State::kAbsent, false), refused)
      << "the side that serves must not be dropped";
  EXPECT_THAT(endpoint.TransitionTo(State::kImporting, false), refused);
  const Unit unit{RowUnitKey("r", "c"), {{1, "v"}}};
  EXPECT_THAT(endpoint->Replace(endpoint.epoch, {&unit, 1}, false), refused) << "nor replaced";
  ASSERT_OK(endpoint.TransitionTo(State::kFrozen, true));
  EXPECT_THAT(endpoint.TransitionTo(State::kAbsent, false), refused);
  EXPECT_THAT(endpoint->Replace(endpoint.epoch, {&unit, 1}, false), refused);
}

TEST_P(MigrationSuite, ATargetIsFilledAndThenServes) {
  const DatasetSpec target = Target(Shape::kRows);
  const WorkerEndpoint endpoint(backend(), target);
  EXPECT_TRUE(endpoint->Status()->All(State::kAbsent));
  ASSERT_OK(endpoint.TransitionTo(State::kImporting, false));
  ASSERT_OK(endpoint.TransitionTo(State::kImporting, false));
  std::vector<Unit> units;
  for (int i = 0; i < 300; ++i) {
    units.push_back({RowUnitKey(fmt::format("r{:03}", i), "c"), {{2, "new"}, {1, std::string(100, 'o')}}});
  }
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, /*fresh=*/true));
  EXPECT_EQ(ScanAll(*endpoint, {}, WallClockMs()), units);
  // A unit is replaced, not merged; one without cells is removed.
  units[0].cells = {{1, "other"}};
  units[1].cells.clear();
  ASSERT_OK(endpoint->Replace(endpoint.epoch, {units.data(), 2}, false));
  ASSERT_OK_AND_ASSIGN(const auto read,
                       endpoint->Read(std::vector<std::string>{units[0].key, units[1].key}, WallClockMs()));
  EXPECT_EQ(read[0], units[0]);
  EXPECT_TRUE(read[1].cells.empty());
  // While it is made ready, writes of the worker are not captured. Once it serves, those of clients are.
  ASSERT_OK(endpoint.TransitionTo(State::kImporting, true));
  ASSERT_OK(endpoint->Replace(endpoint.epoch, {units.data(), 2}, false));
  ASSERT_OK(endpoint->RaiseTimestamp(endpoint.epoch, WallClockMs() + 60'000));
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  EXPECT_TRUE(endpoint->ReadDirty(10)->empty());
  const auto rows = *backend().OpenRows(target);
  EXPECT_EQ(Read(*rows, "r000"), "c@1=other");
  EXPECT_EQ(Read(*rows, "r001"), "");
  EXPECT_EQ(Read(*rows, "r002"), "c@2=new");
  const CellWrite cell{"c", "v", std::nullopt};
  ASSERT_OK_AND_ASSIGN(const PutResult put, rows->Put("r000", {&cell, 1}, {}));
  EXPECT_GT(*put.timestamp, WallClockMs() + 50'000)
      << "not above the timestamps that the other side has assigned";
  EXPECT_EQ(KeysOf(*endpoint->ReadDirty(10)), std::vector<std::string>{units[0].key});
  ASSERT_OK(endpoint.TransitionTo(State::kServing, false));
  ASSERT_OK(backend().DropDataset(target));
}

TEST_P(MigrationSuite, ACreateReplacesNoObjectWhateverTheCountersSay) {
  const DatasetSpec target = Target(Shape::kObjects);
  const WorkerEndpoint endpoint(backend(), target);
  ASSERT_OK(endpoint.TransitionTo(State::kImporting, false));
  std::vector<Unit> units;
  for (uint64_t local = 1; local <= 5; ++local) {
    units.push_back({ObjectUnitKey(ObjectId::Make(3, 7, local)->value()), {{5, R"({"a":1})"}}});
  }
  // The others were removed on the other side, and nobody says how far its counter is.
  units.push_back({ObjectUnitKey(ObjectId::Make(3, 7, 900)->value()), {{5, R"({"a":1})"}}});
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, false));
  ASSERT_OK(endpoint.TransitionTo(State::kServing, false));
  const auto objects = *backend().OpenObjects(target);
  std::set<uint64_t> ids;
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"new":1})", {.shard = 3}));
    EXPECT_TRUE(ids.insert(id).second);
  }
  for (const Unit& unit : units) {
    const uint64_t id = ReadBigEndian<uint64_t>(unit.key);
    EXPECT_FALSE(ids.contains(id));
    EXPECT_EQ(objects->Get(id, {})->data, R"({"a":1})");
  }
  ASSERT_OK(backend().DropDataset(target));
}

TEST_P(MigrationSuite, ATargetOfObjectsGivesNoIdTwice) {
  const DatasetSpec target = Target(Shape::kObjects);
  const WorkerEndpoint endpoint(backend(), target);
  ASSERT_OK(endpoint.TransitionTo(State::kImporting, false));
  const Unit unit{ObjectUnitKey(ObjectId::Make(3, 7, 41)->value()), {{5, R"({"a":1})"}}};
  const Unit inactive{ObjectUnitKey(ObjectId::Make(3, 7, 42)->value()), {{6, R"({"active":false})"}}};
  ASSERT_OK(endpoint->Replace(endpoint.epoch, std::vector<Unit>{unit, inactive}, false));
  ASSERT_OK(endpoint->RaiseLocalIds(endpoint.epoch, {.shards = {{3, 1000}, {4, 1}}, .others = 500}));
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  {
    const auto objects = *backend().OpenObjects(target);
    EXPECT_EQ(objects->Get(ReadBigEndian<uint64_t>(unit.key), {})->data, R"({"a":1})");
    EXPECT_FALSE(objects->Get(ReadBigEndian<uint64_t>(inactive.key), {}).ok());
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = 3}));
    EXPECT_GE(ObjectId::FromValue(id)->local(), 1000u);
    // A shard that had no object that the other side knows of.
    ASSERT_OK_AND_ASSIGN(const uint64_t other, objects->Create("{}", {.shard = 5}));
    EXPECT_GE(ObjectId::FromValue(other)->local(), 500u);
  }
  ASSERT_OK(endpoint.TransitionTo(State::kServing, false));
  ASSERT_OK(backend().DropDataset(target));
}

TEST_P(MigrationSuite, ATargetOfMappingsCountsThem) {
  const DatasetSpec target = Target(Shape::kMappings);
  const WorkerEndpoint endpoint(backend(), target);
  ASSERT_OK(endpoint.TransitionTo(State::kImporting, false));
  const uint64_t from = ObjectId::Make(2, 1, 1)->value();
  std::vector<Unit> units;
  for (uint64_t to = 1; to <= 10; ++to)
    units.push_back({MappingUnitKey(from, to), {{0, ObjectUnitKey(100 - to)}}});
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, true));
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, false));
  units[0].cells.clear();
  units[1].cells[0].value = ObjectUnitKey(1);
  ASSERT_OK(endpoint->Replace(endpoint.epoch, {units.data(), 2}, false));
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  const auto mappings = *backend().OpenMappings(target);
  EXPECT_EQ(*mappings->Count(from), 9u);
  const auto list = *mappings->List(from, {.limit = 100});
  ASSERT_EQ(list.entries.size(), 9u);
  EXPECT_EQ(list.entries[0].to, 2u);
  EXPECT_EQ(list.entries[1].to, 10u);
  ASSERT_OK(endpoint.TransitionTo(State::kServing, false));
  ASSERT_OK(backend().DropDataset(target));
}

TEST_P(MigrationSuite, AWorkerThatWasReplacedIsShutOut) {
  const auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "r", "c", "v", 1));
  const WorkerEndpoint old(backend(), spec());
  old.Move();
  const auto next = *backend().OpenForMigration(spec());
  EXPECT_THAT(next->RaiseEpoch(old.epoch), FailsWith(absl::StatusCode::kAborted, ""));
  ASSERT_OK(next->RaiseEpoch(old.epoch + 1));
  const Unit unit{RowUnitKey("r", "c"), {{1, "stale"}}};
  const auto aborted = FailsWith(absl::StatusCode::kAborted, "");
  EXPECT_THAT(old->Replace(old.epoch, {&unit, 1}, false), aborted);
  const DirtyEntry entry{.id = 1, .key = unit.key};
  EXPECT_THAT(old->RemoveDirty(old.epoch, {&entry, 1}), aborted);
  for (const State state : {State::kServing, State::kAbsent})
    EXPECT_THAT(old.TransitionTo(state, false), aborted);
  ASSERT_OK(next->TransitionTo(old.epoch + 1, State::kServing, true));
  EXPECT_EQ(Read(*rows, "r"), "c@1=v");
}

TEST_P(MigrationSuite, NoWriteIsUnderWayWhenItIsFrozen) {
  const auto rows = Rows(/*max_versions=*/0);
  const WorkerEndpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  std::atomic<bool> frozen{false};
  std::atomic<bool> stop{false};
  std::atomic<int> late{0};
  std::atomic<int> odd{0};
  std::atomic<int> begun{0};
  std::mutex mutex;
  std::set<std::string> acknowledged;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const std::string row = fmt::format("{}/{}", t, i);
        const bool was_frozen = frozen;
        const absl::Status status = PutCell(*rows, row, "c", "v", 1);
        ++begun;
        if (status.ok() && was_frozen) ++late;
        if (!status.ok() && !IsMigrating(status)) ++odd;
        if (!status.ok()) continue;
        const std::lock_guard lock(mutex);
        acknowledged.insert(RowUnitKey(row, "c"));
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return begun > 200; }));
  EXPECT_OK(endpoint.TransitionTo(State::kFrozen, true));
  frozen = true;
  // The log is complete now: no write can be added.
  std::set<std::string> recorded;
  for (;;) {
    const auto entries = endpoint->ReadDirty(500);
    EXPECT_OK(entries);
    if (!entries.ok() || entries->empty()) break;
    for (const DirtyEntry& entry : *entries) recorded.insert(entry.key);
    EXPECT_OK(endpoint->RemoveDirty(endpoint.epoch, *entries));
  }
  const int then = begun;
  EXPECT_TRUE(Eventually([&] { return begun > then + 20; }));
  stop = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(late, 0);
  EXPECT_EQ(odd, 0);
  EXPECT_TRUE(endpoint->ReadDirty(10)->empty());
  EXPECT_EQ(recorded, acknowledged);
}

}  // namespace
}  // namespace kvstore::testing
