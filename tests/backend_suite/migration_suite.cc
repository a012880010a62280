#include <fmt/format.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"
#include "idgen/object_id.h"
#include "kvstore_api/big_endian.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/moved.h"
#include "kvstore_api/unit_key.h"
#include "tests/backend_suite/suite.h"
#include "tests/support/eventually.h"
#include "tests/support/many_locks.h"

/// What a migration asks of a backend, on either side.
namespace kvstore::testing {
namespace {

using State = EndpointState;

/// All units of a range, page by page.
std::vector<Unit> ScanAll(MigrationEndpoint& endpoint, const UnitRange& range, uint64_t as_of) {
  std::vector<Unit> units;
  auto scan = endpoint.Scan(range, as_of);
  EXPECT_OK(scan);
  if (!scan.ok()) return units;
  for (;;) {
    auto page = (*scan)->Next();
    EXPECT_OK(page);
    if (!page.ok() || page->empty()) return units;
    for (Unit& unit : *page) units.push_back(std::move(unit));
  }
}

std::vector<std::string> KeysOf(const std::vector<DirtyEntry>& entries) {
  std::vector<std::string> keys;
  for (const DirtyEntry& entry : entries) keys.push_back(entry.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// An endpoint on the dataset that was created last, with an epoch.
struct Endpoint {
  Endpoint(Backend& backend, const DatasetSpec& spec) : endpoint(*backend.OpenForMigration(spec)) {
    EXPECT_OK(endpoint->RaiseEpoch(epoch));
  }
  MigrationEndpoint* operator->() const { return endpoint.get(); }
  MigrationEndpoint& operator*() const { return *endpoint; }
  absl::Status Enter(State state, bool capture) const { return endpoint->Enter(epoch, state, capture); }
  /// From serving to moved, as a cutover goes.
  void Move() const {
    ASSERT_OK(Enter(State::kServing, true));
    ASSERT_OK(Enter(State::kFrozen, true));
    ASSERT_OK(Enter(State::kMoved, true));
  }
  const uint64_t epoch = 10;
  const std::unique_ptr<MigrationEndpoint> endpoint;
};

/// A dataset that the backend does not have yet.
DatasetSpec Target(Shape shape) {
  return {.name = "target",
          .shape = shape,
          .backend = "test",
          .type = shape == Shape::kObjects ? 7u : 0u,
          .max_versions = shape == Shape::kRows ? 2u : 1u,
          .engine = MigrationSuite::GetParam().engine,
          .incarnation = 77};
}

TEST_P(MigrationSuite, ColumnsAreUnitsInOrderOfTheirKeys) {
  const auto rows = Rows(/*max_versions=*/2);
  std::map<std::string, std::vector<Cell>> expected;
  const auto put = [&](const std::string& row, const std::string& column, uint64_t timestamp,
                       const std::string& value) {
    ASSERT_OK(PutCell(*rows, row, column, value, timestamp));
    auto& cells = expected[RowUnitKey(row, column)];
    cells.insert(cells.begin(), {timestamp, value});
    if (cells.size() > 2) cells.pop_back();
  };
  const std::string nul("\0", 1);
  for (const std::string& row :
       {std::string("a"), "a" + nul, "a" + nul + "b", std::string("\xff\xff"), std::string("b")}) {
    for (const std::string& column : {std::string(), nul, std::string("c"), std::string("\xff")}) {
      for (uint64_t timestamp = 1; timestamp <= 3; ++timestamp) put(row, column, timestamp, row + column);
    }
  }
  // More columns, and more bytes, than a page has.
  for (int i = 0; i < 2500; ++i) put("wide", fmt::format("{:05}", i), 1, "v");
  for (int i = 0; i < 20; ++i) put(fmt::format("large{}", i), "c", 1, std::string(200'000, 'x'));
  const Endpoint endpoint(backend(), spec());
  const auto units = ScanAll(*endpoint, {}, WallClockMs());
  ASSERT_EQ(units.size(), expected.size());
  auto one = expected.begin();
  for (const Unit& unit : units) {
    ASSERT_EQ(unit.key, one->first);
    ASSERT_EQ(unit.cells, one->second);
    ++one;
  }
  // In parts: each once.
  auto partitions = endpoint->Partitions(4);
  ASSERT_OK(partitions);
  std::set<std::string> seen;
  for (const UnitRange& range : *partitions) {
    for (const Unit& unit : ScanAll(*endpoint, range, WallClockMs()))
      EXPECT_TRUE(seen.insert(unit.key).second);
  }
  EXPECT_EQ(seen.size(), expected.size());
  // A part by keys.
  const std::string from = RowUnitKey("wide", "01000");
  const std::string to = RowUnitKey("wide", "02000");
  EXPECT_EQ(ScanAll(*endpoint, {.start = from, .end = to}, WallClockMs()).size(), 1000u);
  // By name, with one that is not there.
  std::vector<std::string> keys = {RowUnitKey("none", ""), to, from, RowUnitKey("large3", "c")};
  ASSERT_OK_AND_ASSIGN(const auto read, endpoint->Read(keys, WallClockMs()));
  ASSERT_EQ(read.size(), 4u);
  EXPECT_TRUE(read[0].cells.empty());
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].key, keys[i]);
  EXPECT_EQ(read[3].cells[0].value.size(), 200'000u);
}

TEST_P(MigrationSuite, WhatIsExpiredAtATimeIsNoPartOfAUnit) {
  const auto rows = Rows(/*max_versions=*/3, /*ttl_ms=*/1000);
  // In the past: as of the future nothing is read.
  const uint64_t now = WallClockMs() - 200'000;
  ASSERT_OK(PutCell(*rows, "r", "c", "old", now + 100'000));
  ASSERT_OK(PutCell(*rows, "r", "c", "new", now + 101'000));
  const Endpoint endpoint(backend(), spec());
  const std::string key = RowUnitKey("r", "c");
  const auto cells = [&](uint64_t as_of) {
    const auto units = *endpoint->Read({&key, 1}, as_of);
    const auto scanned = ScanAll(*endpoint, {}, as_of);
    EXPECT_EQ(scanned.size(), units[0].cells.empty() ? 0u : 1u);
    return units[0].cells.size();
  };
  EXPECT_EQ(cells(now + 101'000), 2u);
  EXPECT_EQ(cells(now + 101'001), 1u);
  EXPECT_EQ(cells(now + 102'001), 0u);
}

TEST_P(MigrationSuite, AWorkerWhoseClockIsAheadReadsWhatLives) {
  const auto rows = Rows(/*max_versions=*/3, /*ttl_ms=*/1'800'000);
  ASSERT_OK(PutCell(*rows, "r", "c", "v"));
  const Endpoint endpoint(backend(), spec());
  const std::string key = RowUnitKey("r", "c");
  const uint64_t ahead = WallClockMs() + 3'600'000;
  EXPECT_EQ((*endpoint->Read({&key, 1}, ahead))[0].cells.size(), 1u);
  EXPECT_EQ(ScanAll(*endpoint, {}, ahead).size(), 1u);
}

TEST_P(MigrationSuite, ObjectsAndMappingsAreUnits) {
  const auto objects = Objects();
  std::map<std::string, std::string> expected;
  for (uint32_t i = 0; i < 3000; ++i) {
    const std::string data = fmt::format(R"({{"n":{}}})", i);
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(data, {.shard = i % 16}));
    expected[ObjectUnitKey(id)] = data;
  }
  {
    const Endpoint endpoint(backend(), spec());
    const auto units = ScanAll(*endpoint, {}, WallClockMs());
    ASSERT_EQ(units.size(), expected.size());
    auto one = expected.begin();
    for (const Unit& unit : units) {
      ASSERT_EQ(unit.key, one->first);
      ASSERT_EQ(unit.cells.size(), 1u);
      ASSERT_EQ(unit.cells[0].value, one->second);
      ++one;
    }
    size_t in_parts = 0;
    ASSERT_OK_AND_ASSIGN(const auto partitions, endpoint->Partitions(4));
    for (const UnitRange& range : partitions) in_parts += ScanAll(*endpoint, range, WallClockMs()).size();
    EXPECT_EQ(in_parts, expected.size());
    ASSERT_OK_AND_ASSIGN(const auto next, endpoint->NextLocalIds());
    EXPECT_EQ(next.size(), 16u);
    for (const auto& [shard, local] : next) EXPECT_GE(local, 188u);
  }
  const auto mappings = Mappings();
  std::map<std::string, std::string> pairs;
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t from = ObjectId::Make(i % 16, 1, 1 + i % 5)->value();
    ASSERT_OK(mappings->Add(from, i, kMaxTimestamp - i));
    pairs[MappingUnitKey(from, i)] = ObjectUnitKey(kMaxTimestamp - i);
  }
  const Endpoint endpoint(backend(), spec());
  const auto units = ScanAll(*endpoint, {}, WallClockMs());
  ASSERT_EQ(units.size(), pairs.size());
  auto one = pairs.begin();
  for (const Unit& unit : units) {
    ASSERT_EQ(unit.key, one->first);
    ASSERT_EQ(unit.cells, (std::vector<Cell>{{0, one->second}}));
    ++one;
  }
  const std::vector<std::string> keys = {pairs.begin()->first, MappingUnitKey(1, 1)};
  ASSERT_OK_AND_ASSIGN(const auto read, endpoint->Read(keys, WallClockMs()));
  EXPECT_EQ(read[0].cells.size(), 1u);
  EXPECT_TRUE(read[1].cells.empty());
}

TEST_P(MigrationSuite, WritesAreRecordedWhileTheyAreCaptured) {
  const auto rows = Rows(/*max_versions=*/0);
  ASSERT_OK(PutCell(*rows, "before", "c", "v", 1));
  const Endpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  EXPECT_TRUE(endpoint->ReadDirty(10)->empty());
  ASSERT_OK(PutCell(*rows, "r", "c", "v", 1));
  ASSERT_OK(PutCell(*rows, "r", "d", "v"));
  ASSERT_OK(PutCell(*rows, "r", "c", "again", 1));
  const CellWrite absent{"e", "v", 1};
  const WriteOptions if_absent{.condition = Condition{.column = "e"}};
  ASSERT_OK(rows->Put("r", {&absent, 1}, if_absent));
  const RowWrite batch{"batch", {&absent, 1}, {}};
  ASSERT_OK(rows->PutMany({&batch, 1})[0]);
  ASSERT_OK_AND_ASSIGN(const auto entries, endpoint->ReadDirty(1000));
  EXPECT_EQ(KeysOf(entries),
            (std::vector<std::string>{RowUnitKey("batch", "e"), RowUnitKey("r", "c"), RowUnitKey("r", "c"),
                                      RowUnitKey("r", "d"), RowUnitKey("r", "e")}));
  EXPECT_EQ(endpoint->Lag()->entries, 5u);
  // Exactly what was read is removed.
  ASSERT_OK(PutCell(*rows, "r", "c", "later", 2));
  ASSERT_OK(endpoint->RemoveDirty(endpoint.epoch, entries));
  EXPECT_EQ(KeysOf(*endpoint->ReadDirty(1000)), (std::vector<std::string>{RowUnitKey("r", "c")}));
  ASSERT_OK(endpoint->RemoveDirty(endpoint.epoch, *endpoint->ReadDirty(1000)));
  // Deletes: of cells, of columns, of a row, which is one entry or one for each column.
  ASSERT_OK(rows->Delete("r", {.cells = std::vector<CellName>{{"c", 2}}}));
  ASSERT_OK(rows->Delete("r", {.columns = std::vector<std::string>{"d"}}));
  std::vector<std::string> keys = KeysOf(*endpoint->ReadDirty(1000));
  EXPECT_EQ(keys, (std::vector<std::string>{RowUnitKey("r", "c"), RowUnitKey("r", "d")}));
  ASSERT_OK(endpoint->RemoveDirty(endpoint.epoch, *endpoint->ReadDirty(1000)));
  ASSERT_OK(rows->Delete("r", {}));
  ASSERT_OK_AND_ASSIGN(const auto of_row, endpoint->ReadDirty(1000));
  for (const std::string& key : KeysOf(of_row)) {
    EXPECT_TRUE(key.starts_with(RowUnitKey("r", "").substr(0, 3))) << key;
  }
  EXPECT_FALSE(endpoint->ReadDirty(1000)->empty());
  // What changes nothing may leave nothing; what is off leaves nothing.
  ASSERT_OK(endpoint.Enter(State::kServing, false));
  EXPECT_OK(PutCell(*rows, "r", "c", "v", 1));
  EXPECT_TRUE(endpoint->Status()->All(State::kServing));
  EXPECT_FALSE(endpoint->Status()->capture);
}

TEST_P(MigrationSuite, ObjectsAndMappingsAreRecorded) {
  {
    const auto objects = Objects();
    const Endpoint endpoint(backend(), spec());
    ASSERT_OK(endpoint.Enter(State::kServing, true));
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = 3}));
    ASSERT_OK(objects->Update(id, [](std::string_view) { return R"({"a":1})"; }, {}));
    ASSERT_OK(objects->Erase(id));
    EXPECT_EQ(KeysOf(*endpoint->ReadDirty(100)), std::vector<std::string>(3, ObjectUnitKey(id)));
    ASSERT_OK(endpoint.Enter(State::kServing, false));
  }
  const auto mappings = Mappings();
  const Endpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  const uint64_t from = ObjectId::Make(3, 1, 1)->value();
  ASSERT_OK(mappings->Add(from, 5, 1));
  ASSERT_OK(mappings->Add(from, 5, 2));
  ASSERT_OK(mappings->Remove(from, 5));
  EXPECT_EQ(KeysOf(*endpoint->ReadDirty(100)), std::vector<std::string>(3, MappingUnitKey(from, 5)));
}

TEST_P(MigrationSuite, BehindARefusedWriteOfABatchNoneOfTheSameRowIsCarriedOut) {
  const auto rows = Rows(1);
  const Endpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  std::atomic<bool> stop{false};
  // Held and let go as a cutover that backs out does it, over and over.
  std::thread holds([&] {
    while (!stop) {
      EXPECT_OK(endpoint.Enter(State::kFrozen, true));
      EXPECT_OK(endpoint.Enter(State::kServing, true));
    }
  });
  const CellWrite cell{"c", "v", std::nullopt};
  const std::vector<RowWrite> writes(3'000, {"r", {&cell, 1}, {}});
  const std::vector<RowDelete> deletes(300, {"r", {}});
  bool cut = false;
  // Whether the results are some that were carried out, and from the first refusal on none.
  const auto look = [&](const std::vector<absl::Status>& results) {
    const auto first = std::find_if(results.begin(), results.end(), IsMoving);
    EXPECT_TRUE(std::all_of(first, results.end(), IsMoving));
    cut = cut || (first != results.begin() && first != results.end());
  };
  for (int i = 0; i < 100 || (GetParam().name.starts_with("RocksDb") && !cut && i < 5'000); ++i) {
    std::vector<absl::Status> put;
    for (const auto& result : rows->PutMany(writes)) put.push_back(result.status());
    look(put);
    look(rows->DeleteMany(deletes));
    if (HasFailure() || (cut && i > 10)) break;
  }
  stop = true;
  holds.join();
  EXPECT_TRUE(cut || !GetParam().name.starts_with("RocksDb"));
}

TEST_P(MigrationSuite, EntriesThatComeLateAreReadToo) {
  const auto rows = Rows(1);
  const Endpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  constexpr int kThreads = 4;
  // Enough that a log looks for where it begins (rocks::DirtyLog::Settle).
  const int puts = GetParam().name.starts_with("RocksDb") ? 5'000 : 300;
  std::atomic<int> writing{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < puts; ++i) {
        EXPECT_OK(PutCell(*rows, fmt::format("{}-{}", t, i), "c", "v", 1));
      }
      --writing;
    });
  }
  std::set<std::string> seen;
  for (bool last = false;;) {
    // Nobody writes any more: what is empty now stays so.
    last = writing == 0;
    const auto entries = endpoint->ReadDirty(500);
    ASSERT_OK(entries);
    for (const DirtyEntry& entry : *entries) seen.insert(entry.key);
    ASSERT_OK(endpoint->RemoveDirty(endpoint.epoch, *entries));
    if (last && entries->empty()) break;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), static_cast<size_t>(kThreads * puts));
  EXPECT_EQ(endpoint->Lag()->entries, 0u);
}

TEST_P(MigrationSuite, IdsOfEntriesNeverRepeat) {
  auto rows = Rows();
  std::set<std::pair<uint32_t, uint64_t>> ids;
  uint64_t epoch = 10;
  for (int life = 0; life < 3; ++life) {
    auto endpoint = *backend().OpenForMigration(spec());
    ASSERT_OK(endpoint->RaiseEpoch(++epoch));
    ASSERT_OK(endpoint->Enter(epoch, State::kServing, true));
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 20; ++i) ASSERT_OK(PutCell(*rows, "r" + std::to_string(i), "c", "v", 1));
      ASSERT_OK_AND_ASSIGN(const auto entries, endpoint->ReadDirty(1000));
      EXPECT_EQ(entries.size(), 20u);
      for (const DirtyEntry& entry : entries) EXPECT_TRUE(ids.emplace(entry.log, entry.id).second);
      ASSERT_OK(endpoint->RemoveDirty(epoch, entries));
    }
    rows.reset();
    endpoint.reset();
    Reopen();
    rows = *backend().OpenRows(spec());
  }
}

TEST_P(MigrationSuite, EachStateRefusesWhatItForbidsAndIsKept) {
  auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "r", "c", "v", 1));
  auto endpoint = std::make_unique<Endpoint>(backend(), spec());
  const auto reads = [&] { return rows->Get("r", {}, std::nullopt).status(); };
  const auto writes = [&] { return PutCell(*rows, "r", "c", "w", 1); };
  const auto expect = [&](bool readable, bool writable, const char* state) {
    for (const bool reopened : {false, true}) {
      EXPECT_EQ(reads().ok(), readable) << state << reads();
      EXPECT_EQ(writes().ok(), writable) << state << writes();
      EXPECT_EQ(IsMoving(reads()), !readable) << reads();
      if (!writable) {
        EXPECT_TRUE(IsMoving(writes())) << writes();
        EXPECT_TRUE(IsMoving(rows->Delete("r", {}))) << state;
        const CellWrite cell{"c", "w", std::nullopt};
        const RowWrite write{"r", {&cell, 1}, {}};
        EXPECT_TRUE(IsMoving(rows->PutMany({&write, 1})[0].status())) << state;
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
    EXPECT_OK(fresh->Enter(epoch, state, capture));
    EXPECT_OK(fresh->Enter(epoch, state, capture)) << "a sweep is repeated";
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
  const Endpoint endpoint(backend(), spec());
  const auto refused = FailsWith(absl::StatusCode::kFailedPrecondition, "");
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  EXPECT_THAT(endpoint.Enter(State::kMoved, true), refused);
  EXPECT_THAT(endpoint.Enter(State::kAbsent, false), refused) << "the truth is not dropped";
  EXPECT_THAT(endpoint.Enter(State::kImporting, false), refused);
  const Unit unit{RowUnitKey("r", "c"), {{1, "v"}}};
  EXPECT_THAT(endpoint->Replace(endpoint.epoch, {&unit, 1}, false), refused) << "nor written to";
  ASSERT_OK(endpoint.Enter(State::kFrozen, true));
  EXPECT_THAT(endpoint.Enter(State::kAbsent, false), refused);
  EXPECT_THAT(endpoint->Replace(endpoint.epoch, {&unit, 1}, false), refused);
}

TEST_P(MigrationSuite, ATargetIsFilledAndThenServes) {
  const DatasetSpec target = Target(Shape::kRows);
  const Endpoint endpoint(backend(), target);
  EXPECT_TRUE(endpoint->Status()->All(State::kAbsent));
  ASSERT_OK(endpoint.Enter(State::kImporting, false));
  ASSERT_OK(endpoint.Enter(State::kImporting, false));
  std::vector<Unit> units;
  for (int i = 0; i < 300; ++i) {
    units.push_back({RowUnitKey(fmt::format("r{:03}", i), "c"), {{2, "new"}, {1, std::string(100, 'o')}}});
  }
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, /*fresh=*/true));
  EXPECT_EQ(ScanAll(*endpoint, {}, WallClockMs()), units);
  // Replaced, not merged; and removed.
  units[0].cells = {{1, "other"}};
  units[1].cells.clear();
  ASSERT_OK(endpoint->Replace(endpoint.epoch, {units.data(), 2}, false));
  ASSERT_OK_AND_ASSIGN(const auto read,
                       endpoint->Read(std::vector<std::string>{units[0].key, units[1].key}, WallClockMs()));
  EXPECT_EQ(read[0], units[0]);
  EXPECT_TRUE(read[1].cells.empty());
  // Made ready, it captures nothing of the worker; then it serves, and what is written is recorded.
  ASSERT_OK(endpoint.Enter(State::kImporting, true));
  ASSERT_OK(endpoint->Replace(endpoint.epoch, {units.data(), 2}, false));
  ASSERT_OK(endpoint->RaiseTimestamp(endpoint.epoch, WallClockMs() + 60'000));
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  EXPECT_TRUE(endpoint->ReadDirty(10)->empty());
  const auto rows = *backend().OpenRows(target);
  EXPECT_EQ(Read(*rows, "r000"), "c@1=other");
  EXPECT_EQ(Read(*rows, "r001"), "");
  EXPECT_EQ(Read(*rows, "r002"), "c@2=new");
  const CellWrite cell{"c", "v", std::nullopt};
  ASSERT_OK_AND_ASSIGN(const PutResult put, rows->Put("r000", {&cell, 1}, {}));
  EXPECT_GT(*put.timestamp, WallClockMs() + 50'000) << "below what was assigned on the other side";
  EXPECT_EQ(KeysOf(*endpoint->ReadDirty(10)), std::vector<std::string>{units[0].key});
  ASSERT_OK(endpoint.Enter(State::kServing, false));
  ASSERT_OK(backend().DropDataset(target));
}

TEST_P(MigrationSuite, ACreateReplacesNoObjectWhateverTheCountersSay) {
  const DatasetSpec target = Target(Shape::kObjects);
  const Endpoint endpoint(backend(), target);
  ASSERT_OK(endpoint.Enter(State::kImporting, false));
  std::vector<Unit> units;
  for (uint64_t local = 1; local <= 5; ++local) {
    units.push_back({ObjectUnitKey(ObjectId::Make(3, 7, local)->value()), {{5, R"({"a":1})"}}});
  }
  // All others were removed on the other side; nobody says how far its counter is.
  units.push_back({ObjectUnitKey(ObjectId::Make(3, 7, 900)->value()), {{5, R"({"a":1})"}}});
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, false));
  ASSERT_OK(endpoint.Enter(State::kServing, false));
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
  const Endpoint endpoint(backend(), target);
  ASSERT_OK(endpoint.Enter(State::kImporting, false));
  const Unit unit{ObjectUnitKey(ObjectId::Make(3, 7, 41)->value()), {{5, R"({"a":1})"}}};
  const Unit inactive{ObjectUnitKey(ObjectId::Make(3, 7, 42)->value()), {{6, R"({"active":false})"}}};
  ASSERT_OK(endpoint->Replace(endpoint.epoch, std::vector<Unit>{unit, inactive}, false));
  ASSERT_OK(endpoint->RaiseLocalIds(endpoint.epoch, {{3, 1000}, {4, 1}}));
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  {
    const auto objects = *backend().OpenObjects(target);
    EXPECT_EQ(objects->Get(ReadBigEndian<uint64_t>(unit.key), {})->data, R"({"a":1})");
    EXPECT_FALSE(objects->Get(ReadBigEndian<uint64_t>(inactive.key), {}).ok());
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = 3}));
    EXPECT_GE(ObjectId::FromValue(id)->local(), 1000u);
  }
  ASSERT_OK(endpoint.Enter(State::kServing, false));
  ASSERT_OK(backend().DropDataset(target));
}

TEST_P(MigrationSuite, ATargetOfMappingsCountsThem) {
  const DatasetSpec target = Target(Shape::kMappings);
  const Endpoint endpoint(backend(), target);
  ASSERT_OK(endpoint.Enter(State::kImporting, false));
  const uint64_t from = ObjectId::Make(2, 1, 1)->value();
  std::vector<Unit> units;
  for (uint64_t to = 1; to <= 10; ++to)
    units.push_back({MappingUnitKey(from, to), {{0, ObjectUnitKey(100 - to)}}});
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, true));
  ASSERT_OK(endpoint->Replace(endpoint.epoch, units, false));
  units[0].cells.clear();
  units[1].cells[0].value = ObjectUnitKey(1);
  ASSERT_OK(endpoint->Replace(endpoint.epoch, {units.data(), 2}, false));
  ASSERT_OK(endpoint.Enter(State::kServing, true));
  const auto mappings = *backend().OpenMappings(target);
  EXPECT_EQ(*mappings->Count(from), 9u);
  const auto list = *mappings->List(from, {.limit = 100});
  ASSERT_EQ(list.entries.size(), 9u);
  EXPECT_EQ(list.entries[0].to, 2u);
  EXPECT_EQ(list.entries[1].to, 10u);
  ASSERT_OK(endpoint.Enter(State::kServing, false));
  ASSERT_OK(backend().DropDataset(target));
}

TEST_P(MigrationSuite, AWorkerThatWasReplacedIsShutOut) {
  const auto rows = Rows();
  ASSERT_OK(PutCell(*rows, "r", "c", "v", 1));
  const Endpoint old(backend(), spec());
  old.Move();
  const auto next = *backend().OpenForMigration(spec());
  EXPECT_THAT(next->RaiseEpoch(old.epoch), FailsWith(absl::StatusCode::kAborted, ""));
  ASSERT_OK(next->RaiseEpoch(old.epoch + 1));
  const Unit unit{RowUnitKey("r", "c"), {{1, "stale"}}};
  const auto aborted = FailsWith(absl::StatusCode::kAborted, "");
  EXPECT_THAT(old->Replace(old.epoch, {&unit, 1}, false), aborted);
  const DirtyEntry entry{.id = 1, .key = unit.key};
  EXPECT_THAT(old->RemoveDirty(old.epoch, {&entry, 1}), aborted);
  for (const State state : {State::kServing, State::kAbsent}) EXPECT_THAT(old.Enter(state, false), aborted);
  ASSERT_OK(next->Enter(old.epoch + 1, State::kServing, true));
  EXPECT_EQ(Read(*rows, "r"), "c@1=v");
}

TEST_P(MigrationSuite, NoWriteIsUnderWayWhenItIsFrozen) {
  const auto rows = Rows(/*max_versions=*/0);
  const Endpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.Enter(State::kServing, true));
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
        if (!status.ok() && !IsMoving(status)) ++odd;
        if (!status.ok()) continue;
        const std::lock_guard lock(mutex);
        acknowledged.insert(RowUnitKey(row, "c"));
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return begun > 200; }));
  EXPECT_OK(endpoint.Enter(State::kFrozen, true));
  frozen = true;
  // What is recorded now is all that there ever will be.
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
