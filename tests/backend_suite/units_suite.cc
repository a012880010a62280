#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backend_api/outcome.h"
#include "backend_api/unit_key.h"
#include "base/clock.h"
#include "idgen/object_id.h"
#include "tests/backend_suite/migration_suite.h"
#include "tests/support/eventually.h"

/// How a dataset is read as a whole, without a migration: as it is, and as it was at the time of a snapshot.
namespace kvstore::testing {
namespace {

using std::chrono::seconds;
constexpr seconds kLong{600};
const auto kExpired = FailsWith(absl::StatusCode::kAborted, "the snapshot has expired");

/// Returns the units of all partitions together, sorted; each must be in one partition only.
std::vector<Unit> ScanPartitions(UnitView& view, size_t wanted) {
  std::vector<Unit> all;
  const auto partitions = view.Partitions(wanted);
  EXPECT_OK(partitions);
  if (!partitions.ok()) return all;
  for (const UnitRange& range : *partitions) {
    for (Unit& unit : ScanAll(view, range, WallClockMs())) all.push_back(std::move(unit));
  }
  std::sort(all.begin(), all.end(), [](const Unit& a, const Unit& b) { return a.key < b.key; });
  return all;
}

std::string RowName(int i) { return fmt::format("row{:04}", i); }

/// Writes one column of each of `count` rows.
void PutRows(RowStore& rows, int count, const std::string& value, uint64_t timestamp) {
  const CellWrite cell{"c", value, timestamp};
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(RowName(i));
  std::vector<RowWrite> writes;
  for (const std::string& name : names) writes.push_back({name, {&cell, 1}, {}});
  for (const auto& result : rows.PutMany(writes)) ASSERT_OK(result);
}

TEST_P(UnitsSuite, AReaderWithoutAMigrationReadsWhatThereIs) {
  const auto rows = Rows(/*max_versions=*/2);
  PutRows(*rows, 200, "old", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  PutRows(*rows, 100, "new", 2);
  ASSERT_OK(rows->Delete(RowName(150), {}));
  const auto units = ScanAll(*reader, {}, WallClockMs());
  ASSERT_EQ(units.size(), 199u);
  EXPECT_EQ(units[0].key, RowUnitKey(RowName(0), "c"));
  EXPECT_EQ(units[0].cells, (std::vector<Cell>{{2, "new"}, {1, "old"}}));
  EXPECT_EQ(units[100].cells, (std::vector<Cell>{{1, "old"}}));
  EXPECT_EQ(ScanPartitions(*reader, 4), units);
  const std::vector<std::string> keys = {RowUnitKey(RowName(150), "c"), units[0].key};
  ASSERT_OK_AND_ASSIGN(const auto read, reader->Read(keys, WallClockMs()));
  EXPECT_TRUE(read[0].cells.empty());
  EXPECT_EQ(read[1], units[0]);
}

TEST_P(UnitsSuite, ASnapshotMayBeAskedForAsLongAsOneLikes) {
  const auto rows = Rows();
  PutRows(*rows, 3, "v", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(seconds::max()));
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()).size(), 3u);
}

TEST_P(UnitsSuite, AUnitThatIsOverwrittenIsNeverReadInPart) {
  const auto rows = Rows();
  // Large enough to be read apart from the list of cells.
  const std::string value(200'000, 'x');
  ASSERT_OK(PutCell(*rows, "r", "c", value));
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 30; ++i) {
      EXPECT_OK(PutCell(*rows, "r", "c", value));
      Reclaim();
    }
    stop = true;
  });
  const std::string key = RowUnitKey("r", "c");
  while (!stop) {
    const auto scanned = ScanAll(*reader, {}, WallClockMs());
    const auto read = reader->Read({&key, 1}, WallClockMs());
    EXPECT_EQ(scanned.size(), 1u);
    EXPECT_TRUE(read.ok() && (*read)[0].cells.size() == 1u) << read.status();
    if (HasFailure()) break;
  }
  writer.join();
}

TEST_P(UnitsSuite, ASnapshotOfRowsSeesNoLaterWriteOrDelete) {
  const auto rows = Rows(/*max_versions=*/2);
  PutRows(*rows, 300, "old", 1);
  // More columns than are deleted one by one.
  std::vector<std::string> columns;
  for (int i = 0; i < 1500; ++i) columns.push_back(fmt::format("{:04}", i));
  std::vector<CellWrite> cells;
  for (const std::string& column : columns) cells.push_back({column, "v", 1});
  for (size_t i = 0; i < cells.size(); i += 500) {
    ASSERT_OK(rows->Put("wide", std::span(cells).subspan(i, 500), {}));
  }
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  const auto before = ScanAll(*reader, {}, WallClockMs());
  ASSERT_EQ(before.size(), 1800u);
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
  for (uint64_t timestamp = 2; timestamp <= 4; ++timestamp) PutRows(*rows, 100, "new", timestamp);
  for (int i = 200; i < 300; ++i) ASSERT_OK(rows->Delete(RowName(i), {}));
  ASSERT_OK(rows->Delete("wide", {}));
  ASSERT_OK(PutCell(*rows, "another", "c", "v", 1));
  // Versions that are not visible any more are removed from the disk.
  Reclaim();
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()), before);
  EXPECT_EQ(ScanPartitions(*snapshot, 4), before);
  const std::vector<std::string> keys = {RowUnitKey(RowName(0), "c"), RowUnitKey(RowName(250), "c"),
                                         RowUnitKey("another", "c")};
  ASSERT_OK_AND_ASSIGN(const auto read, snapshot->Read(keys, WallClockMs()));
  EXPECT_EQ(read[0].cells, (std::vector<Cell>{{1, "old"}}));
  EXPECT_EQ(read[1].cells, (std::vector<Cell>{{1, "old"}}));
  EXPECT_TRUE(read[2].cells.empty());
  // The reader itself sees all of it.
  const auto now = ScanAll(*reader, {}, WallClockMs());
  ASSERT_EQ(now.size(), 201u);
  EXPECT_EQ(now[1].cells, (std::vector<Cell>{{4, "new"}, {3, "new"}}));
}

TEST_P(UnitsSuite, ASnapshotOfObjectsAndOneOfMappingsSeeNoLaterChange) {
  const auto objects = Objects();
  std::vector<uint64_t> ids;
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"n":1})", {.shard = i % 16}));
    ids.push_back(id);
  }
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  const auto before = ScanAll(*reader, {}, WallClockMs());
  ASSERT_EQ(before.size(), 64u);
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
  const auto mappings = Mappings();
  const uint64_t from = ObjectId::Make(3, 1, 1)->value();
  for (uint64_t to = 1; to <= 50; ++to) ASSERT_OK(mappings->Add(from, to, to));
  ASSERT_OK_AND_ASSIGN(const auto mapped, backend().OpenUnits(spec()));
  const auto pairs = ScanAll(*mapped, {}, WallClockMs());
  ASSERT_EQ(pairs.size(), 50u);
  ASSERT_OK_AND_ASSIGN(const auto of_mappings, mapped->Snapshot(kLong));
  const auto three = [](std::string_view) -> absl::StatusOr<std::string> { return R"({"n":3})"; };
  for (uint32_t i = 0; i < 32; ++i) {
    ASSERT_OK(objects->Create(R"({"n":2})", {.shard = i % 16}).status());
    ASSERT_OK(mappings->Add(from, 100 + i, 100 + i));
    ASSERT_OK(mappings->Remove(from, i + 1));
  }
  for (size_t i = 0; i < ids.size(); i += 2) ASSERT_OK(objects->Update(ids[i], three, {}));
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()), before);
  EXPECT_EQ(ScanAll(*of_mappings, {}, WallClockMs()), pairs);
  EXPECT_EQ(ScanPartitions(*snapshot, 4), before);
  EXPECT_EQ(ScanAll(*reader, {}, WallClockMs()).size(), 96u);
}

TEST_P(UnitsSuite, ASnapshotStaysTheSameUnderLoad) {
  const auto rows = Rows();
  PutRows(*rows, 1'000, "old", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  const auto before = ScanAll(*reader, {}, WallClockMs());
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> done{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      for (int i = t; !stop; i += 2) {
        const std::string row = RowName(i % 1'000);
        EXPECT_OK(i % 3 == 0 ? rows->Delete(row, {}) : PutCell(*rows, row, "c", "new"));
        ++done;
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return done > 100; }));
  for (int i = 0; i < 5; ++i) {
    const uint64_t then = done;
    EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()), before);
    EXPECT_EQ(ScanPartitions(*snapshot, 4), before);
    EXPECT_TRUE(Eventually([&] { return done > then; })) << "the snapshot holds writes up";
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

TEST_P(UnitsSuite, DropsOfOtherDatasetsLeaveASnapshotAlone) {
  const auto objects = Objects();
  const DatasetSpec other = spec();
  ASSERT_OK(objects->Create("{}", {.shard = 3}).status());
  const auto rows = Rows();
  PutRows(*rows, 100, "v", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
  ASSERT_OK(backend().DropDataset(other));
  const DatasetSpec made = Create({.name = "made_later"});
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()).size(), 100u);
  ASSERT_OK(backend().DropDataset(made));
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()).size(), 100u);
}

TEST_P(UnitsSuite, ADropIsNotHeldUpAndEndsTheSnapshot) {
  const auto rows = Rows();
  PutRows(*rows, 100, "v", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()).size(), 100u);
  ASSERT_OK_AND_ASSIGN(const auto scan, snapshot->Scan({}, WallClockMs()));
  ASSERT_OK(backend().DropDataset(spec()));
  EXPECT_THAT(scan->Next(), kExpired);
  const std::string key = RowUnitKey(RowName(0), "c");
  EXPECT_THAT(snapshot->Read({&key, 1}, WallClockMs()), kExpired);
  // Another dataset of that name is not mistaken for it.
  DatasetSpec next = spec();
  next.incarnation += 100;
  ASSERT_OK(backend().CreateDataset(next));
  EXPECT_THAT(snapshot->Read({&key, 1}, WallClockMs()), kExpired);
  ASSERT_OK(backend().DropDataset(next));
}

TEST_P(UnitsSuite, ASnapshotExpiresAfterItsTime) {
  const auto rows = Rows();
  PutRows(*rows, 10, "v", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(seconds(0)));
  const auto expired = FailsWith(absl::StatusCode::kAborted, "its time of 0 s is over");
  const std::string key = RowUnitKey(RowName(0), "c");
  EXPECT_THAT(snapshot->Read({&key, 1}, WallClockMs()), expired);
  EXPECT_THAT(snapshot->Partitions(4), expired);
  ASSERT_OK_AND_ASSIGN(const auto scan, snapshot->Scan({}, WallClockMs()));
  EXPECT_THAT(scan->Next(), expired);
}

TEST_P(UnitsSuite, ASnapshotIsReleasedWhenItIsDestroyed) {
  const auto rows = Rows();
  PutRows(*rows, 10, "v", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  // These are more than a fleet's pools have room for at once.
  for (int i = 0; i < 12; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
    ASSERT_EQ(ScanAll(*snapshot, {}, WallClockMs()).size(), 10u);
  }
  EXPECT_EQ(Read(*rows, RowName(0)), "c@1=v");
}

TEST_P(UnitsSuite, AMigrationBeginsBesideASnapshotAndEndsItAtTheLatestWithTheDataset) {
  const auto rows = Rows();
  PutRows(*rows, 100, "old", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  ASSERT_OK_AND_ASSIGN(const auto snapshot, reader->Snapshot(kLong));
  const auto before = ScanAll(*snapshot, {}, WallClockMs());
  EXPECT_EQ(before.size(), 100u);
  // Neither step waits for the snapshot, which has read all of the dataset.
  const WorkerEndpoint endpoint(backend(), spec());
  ASSERT_OK(endpoint.TransitionTo(EndpointState::kServing, true));
  PutRows(*rows, 100, "new", 2);
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()), before);
  ASSERT_OK(endpoint.TransitionTo(EndpointState::kFrozen, true));
  EXPECT_EQ(ScanAll(*snapshot, {}, WallClockMs()), before);
  ASSERT_OK(endpoint.TransitionTo(EndpointState::kMoved, true));
  const std::string key = RowUnitKey(RowName(0), "c");
  const auto read = snapshot->Read({&key, 1}, WallClockMs());
  EXPECT_TRUE(read.ok() ? *read == std::vector<Unit>{before[0]} : absl::IsAborted(read.status()))
      << read.status();
  ASSERT_OK(endpoint.TransitionTo(EndpointState::kAbsent, false));
  EXPECT_THAT(snapshot->Read({&key, 1}, WallClockMs()), kExpired);
}

TEST_P(UnitsSuite, WhereClientsAreRefusedSoIsAReader) {
  const auto rows = Rows();
  PutRows(*rows, 100, "v", 1);
  ASSERT_OK_AND_ASSIGN(const auto reader, backend().OpenUnits(spec()));
  ASSERT_OK_AND_ASSIGN(const auto scan, reader->Scan({}, WallClockMs()));
  const WorkerEndpoint endpoint(backend(), spec());
  endpoint.Move();
  const auto refused = [](const absl::Status& status) { return !status.ok() && IsMigrating(status); };
  const std::string key = RowUnitKey(RowName(0), "c");
  EXPECT_TRUE(refused(reader->Read({&key, 1}, WallClockMs()).status()));
  EXPECT_TRUE(refused(scan->Next().status()));
  EXPECT_TRUE(refused(reader->Snapshot(kLong).status()));
  // The migration's own reader reads it.
  EXPECT_EQ(ScanAll(*endpoint, {}, WallClockMs()).size(), 100u);
  ASSERT_OK(endpoint.TransitionTo(EndpointState::kServing, true));
  EXPECT_OK(reader->Snapshot(kLong));
  EXPECT_EQ(ScanAll(*reader, {}, WallClockMs()).size(), 100u);
}

}  // namespace
}  // namespace kvstore::testing
