#include <fmt/format.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "base/clock.h"
#include "idgen/object_id.h"
#include "kvstore_api/limits.h"
#include "tests/backend_suite/migration_suite.h"

/// How a migration reads a dataset: its units, and the dirty log of the units that writes touch.
namespace kvstore::testing {
namespace {

using State = EndpointState;

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
  // More columns, and more bytes, than a page of a scan has.
  for (int i = 0; i < 2500; ++i) put("wide", fmt::format("{:05}", i), 1, "v");
  for (int i = 0; i < 20; ++i) put(fmt::format("large{}", i), "c", 1, std::string(200'000, 'x'));
  const WorkerEndpoint endpoint(backend(), spec());
  const auto units = ScanAll(*endpoint, {}, WallClockMs());
  ASSERT_EQ(units.size(), expected.size());
  auto one = expected.begin();
  for (const Unit& unit : units) {
    ASSERT_EQ(unit.key, one->first);
    ASSERT_EQ(unit.cells, one->second);
    ++one;
  }
  // In partitions, each unit is read once.
  auto partitions = endpoint->Partitions(4);
  ASSERT_OK(partitions);
  std::set<std::string> seen;
  for (const UnitRange& range : *partitions) {
    for (const Unit& unit : ScanAll(*endpoint, range, WallClockMs()))
      EXPECT_TRUE(seen.insert(unit.key).second);
  }
  EXPECT_EQ(seen.size(), expected.size());
  // A range of keys.
  const std::string from = RowUnitKey("wide", "01000");
  const std::string to = RowUnitKey("wide", "02000");
  EXPECT_EQ(ScanAll(*endpoint, {.start = from, .end = to}, WallClockMs()).size(), 1000u);
  // By keys, one of which does not exist.
  std::vector<std::string> keys = {RowUnitKey("none", ""), to, from, RowUnitKey("large3", "c")};
  ASSERT_OK_AND_ASSIGN(const auto read, endpoint->Read(keys, WallClockMs()));
  ASSERT_EQ(read.size(), 4u);
  EXPECT_TRUE(read[0].cells.empty());
  for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].key, keys[i]);
  EXPECT_EQ(read[3].cells[0].value.size(), 200'000u);
}

TEST_P(MigrationSuite, WhatIsExpiredAtATimeIsNoPartOfAUnit) {
  const auto rows = Rows(/*max_versions=*/3, /*ttl_ms=*/1000);
  // All times lie in the past, because no read is as of a later time than now.
  const uint64_t now = WallClockMs() - 200'000;
  ASSERT_OK(PutCell(*rows, "r", "c", "old", now + 100'000));
  ASSERT_OK(PutCell(*rows, "r", "c", "new", now + 101'000));
  const WorkerEndpoint endpoint(backend(), spec());
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
  const WorkerEndpoint endpoint(backend(), spec());
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
    const WorkerEndpoint endpoint(backend(), spec());
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
    EXPECT_EQ(next.shards.size(), 16u);
    EXPECT_EQ(next.others, 1u);
    for (const auto& [shard, local] : next.shards) EXPECT_GE(local, 188u);
  }
  const auto mappings = Mappings();
  std::map<std::string, std::string> pairs;
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t from = ObjectId::Make(i % 16, 1, 1 + i % 5)->value();
    ASSERT_OK(mappings->Add(from, i, kMaxTimestamp - i));
    pairs[MappingUnitKey(from, i)] = ObjectUnitKey(kMaxTimestamp - i);
  }
  const WorkerEndpoint endpoint(backend(), spec());
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
  const WorkerEndpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
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
  // Exactly the entries that were read are removed.
  ASSERT_OK(PutCell(*rows, "r", "c", "later", 2));
  ASSERT_OK(endpoint->RemoveDirty(endpoint.epoch, entries));
  EXPECT_EQ(KeysOf(*endpoint->ReadDirty(1000)), (std::vector<std::string>{RowUnitKey("r", "c")}));
  ASSERT_OK(endpoint->RemoveDirty(endpoint.epoch, *endpoint->ReadDirty(1000)));
  // Deletes of cells, of columns, and of a row, which leaves one entry, or one for each column.
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
  // A delete that changes nothing may leave no entry; without capture no write leaves one.
  ASSERT_OK(endpoint.TransitionTo(State::kServing, false));
  EXPECT_OK(PutCell(*rows, "r", "c", "v", 1));
  EXPECT_TRUE(endpoint->Status()->All(State::kServing));
  EXPECT_FALSE(endpoint->Status()->capture);
}

TEST_P(MigrationSuite, ObjectsAndMappingsAreRecorded) {
  {
    const auto objects = Objects();
    const WorkerEndpoint endpoint(backend(), spec());
    ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = 3}));
    ASSERT_OK(objects->Update(id, [](std::string_view) { return R"({"a":1})"; }, {}));
    ASSERT_OK(objects->Erase(id));
    EXPECT_EQ(KeysOf(*endpoint->ReadDirty(100)), std::vector<std::string>(3, ObjectUnitKey(id)));
    ASSERT_OK(endpoint.TransitionTo(State::kServing, false));
  }
  const auto mappings = Mappings();
  const WorkerEndpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  const uint64_t from = ObjectId::Make(3, 1, 1)->value();
  ASSERT_OK(mappings->Add(from, 5, 1));
  ASSERT_OK(mappings->Add(from, 5, 2));
  ASSERT_OK(mappings->Remove(from, 5));
  EXPECT_EQ(KeysOf(*endpoint->ReadDirty(100)), std::vector<std::string>(3, MappingUnitKey(from, 5)));
}

TEST_P(MigrationSuite, EntriesThatComeLateAreReadToo) {
  const auto rows = Rows(1);
  const WorkerEndpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.TransitionTo(State::kServing, true));
  constexpr int kThreads = 4;
  // Enough entries for a log to skip removed ones (rocks::DirtyLog::SkipRemoved).
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
    // Once nobody writes any more, an empty log stays empty.
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
    ASSERT_OK(endpoint->TransitionTo(epoch, State::kServing, true));
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

}  // namespace
}  // namespace kvstore::testing
