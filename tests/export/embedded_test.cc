#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "assembly/open_router.h"
#include "base/clock.h"
#include "base/shift_clock.h"
#include "json/bytes_json.h"
#include "json/json.h"
#include "tests/export/export_fixture.h"

/// Exports of an embedded store.
namespace kvstore {
namespace {

using exports::ExportSource;
using exports::Manifest;
using exports::TableOptions;
using testing::ExportTest;

class EmbeddedExport : public ExportTest {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_PARQUET();
    router_ = *OpenRouter({.data = dir_ / "store"});
  }
  void TearDown() override { ShiftWallClock(0); }

  void Put(const std::string& dataset, const std::string& row, const std::string& column,
           const std::string& value, std::optional<uint64_t> timestamp) {
    const CellWrite cell{column, value, timestamp};
    ASSERT_OK(router_->PutRow(dataset, row, {&cell, 1}, {}));
  }
  std::unique_ptr<ExportSource> Snapshot(const std::string& dataset, std::optional<uint64_t> as_of_ms = {}) {
    const DatasetSpec spec = *router_->GetDataset(dataset);
    reader_ = *(*router_->keeper().FindBackend(spec.backend))->OpenUnits(spec);
    auto source = exports::OpenSnapshot(*reader_, spec, as_of_ms, 8);
    EXPECT_OK(source);
    return *std::move(source);
  }
  std::unique_ptr<ExportSource> Scans(const std::string& dataset, const TableOptions& options) {
    auto source = exports::OpenScans(*router_, *router_->GetDataset(dataset), options, 8);
    EXPECT_OK(source);
    return *std::move(source);
  }
  std::vector<std::string> LinesOf(ExportSource& source, Shape shape, const TableOptions& options = {}) {
    const auto made = exports::ExportDataset(source, Request(shape, options), *blobs_, Options());
    EXPECT_OK(made);
    if (!made.ok()) return {};
    auto lines = Lines(*made, {std::string(Name(shape))});
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  std::unique_ptr<Router> router_;
  std::unique_ptr<UnitReader> reader_;
};

TEST_F(EmbeddedExport, RowsAreThoseOfAScan) {
  ASSERT_OK(router_->CreateDataset({.name = "events", .max_versions = 2}));
  for (uint64_t i = 0; i < 3'000; ++i) {
    Put("events", "row" + std::to_string(i % 500), "c" + std::to_string(i % 7), std::to_string(i), 1 + i);
  }
  // The cells that a client sees, as lines of kv-parquet.
  std::vector<std::string> expected;
  ASSERT_OK_AND_ASSIGN(const auto cursor, router_->ScanRows("events", {}, {.versions = 10}));
  for (ScannedRow row; *cursor->Next(row);) {
    Json items = Json::array();
    std::string line;
    for (const Item& item : row.items) {
      for (const Cell& cell : item.cells) {
        line += (line.empty() ? "" : ",") + std::string(R"({"column":")") + item.column + R"(","value":")" +
                cell.value + R"(","timestamp":)" + std::to_string(cell.timestamp) + "}";
      }
    }
    expected.push_back(R"({"row":")" + row.key + R"(","items":[)" + line + "]}");
  }
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(expected.size(), 500u);
  EXPECT_EQ(LinesOf(*Snapshot("events"), Shape::kRows), expected);
  EXPECT_EQ(LinesOf(*Scans("events", {}), Shape::kRows), expected);
}

TEST_F(EmbeddedExport, AWideRowIsOneRowWhereverPartsBegin) {
  ASSERT_OK(router_->CreateDataset({.name = "events"}));
  for (uint64_t i = 0; i < 4'000; ++i) {
    Put("events", "row" + std::to_string(10'000 + i / 4), "c" + std::to_string(i % 4), std::to_string(i), 1);
  }
  const TableOptions options = {.columns = {{"c0"}, {"c1"}, {"c3"}}};
  const auto lines = LinesOf(*Snapshot("events"), Shape::kRows, options);
  EXPECT_EQ(lines.size(), 1'000u);
  EXPECT_EQ(lines, LinesOf(*Scans("events", options), Shape::kRows, options));
  EXPECT_EQ(lines[7],
            R"({"row":"row10007","items":[{"column":"c0","value":"28"},{"column":"c1","value":"29"},)"
            R"({"column":"c3","value":"31"}]})");
}

TEST_F(EmbeddedExport, ObjectsAndMappingsAreThoseOfScans) {
  ASSERT_OK(router_->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  ASSERT_OK(router_->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_OK_AND_ASSIGN(const uint64_t id,
                         router_->CreateObject("pins", R"({"n":)" + std::to_string(i) + "}", {}));
    ASSERT_OK(router_->AddMapping("boards", id, i, 2 * i));
    if (i % 10 == 0) {
      ASSERT_OK(router_->DeleteObject("pins", id, /*hard=*/false));
    }
    if (i % 15 == 1) {
      ASSERT_OK(router_->DeleteObject("pins", id, /*hard=*/true));
    }
  }
  const auto pins =
      LinesOf(*Snapshot("pins"), Shape::kObjects, {.columns = {{"n", pipe::ColumnType::kInt64}}});
  EXPECT_EQ(pins.size(), 280u);
  EXPECT_EQ(pins, LinesOf(*Scans("pins", {}), Shape::kObjects));
  const auto boards = LinesOf(*Snapshot("boards"), Shape::kMappings);
  EXPECT_EQ(boards.size(), 300u);
  EXPECT_EQ(boards, LinesOf(*Scans("boards", {}), Shape::kMappings));
}

TEST_F(EmbeddedExport, OnlyCellsThatAreVisibleAsOfItsTimeAreInIt) {
  ASSERT_OK(router_->CreateDataset({.name = "events", .max_versions = 1, .ttl_ms = 10'000}));
  const uint64_t now = WallClockMs();
  Put("events", "old", "c", "v", now - 60'000);
  Put("events", "young", "c", "v", now);
  Put("events", "young", "c", "older version", now - 1);
  EXPECT_EQ(LinesOf(*Snapshot("events"), Shape::kRows).size(), 1u);
  // As of an earlier time, which the clock has passed since.
  ShiftWallClock(30'000);
  EXPECT_EQ(LinesOf(*Snapshot("events"), Shape::kRows).size(), 0u);
  EXPECT_EQ(LinesOf(*Snapshot("events", now), Shape::kRows).size(), 1u);
}

TEST_F(EmbeddedExport, IsOfOneMoment) {
  ASSERT_OK(router_->CreateDataset({.name = "events"}));
  for (int i = 0; i < 2'000; ++i)
    Put("events", "row" + std::to_string(10'000 + i), "c", std::string(100, 'v'), 1);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      const std::string value = std::to_string(i);
      // The first column and the last one of a row in the middle, in one write.
      const CellWrite cells[] = {{"a", value, std::nullopt}, {"z", value, std::nullopt}};
      EXPECT_OK(router_->PutRow("events", "row11000", cells, {}));
    }
  });
  const TableOptions options = {.columns = {{"a"}, {"z"}}};
  for (int i = 0; i < 5; ++i) {
    const auto lines = LinesOf(*Snapshot("events"), Shape::kRows, options);
    if (lines.empty()) continue;
    const Json items = Json::parse(lines[0])["items"];
    ASSERT_EQ(items.size(), 2u);
    EXPECT_EQ(items[0]["value"], items[1]["value"]);
  }
  stop = true;
  writer.join();
}

TEST_F(EmbeddedExport, ADatasetThatIsDroppedMeanwhileFailsTheExport) {
  ASSERT_OK(router_->CreateDataset({.name = "events"}));
  Put("events", "r", "c", "v", 1);
  const auto source = Snapshot("events");
  ASSERT_OK(router_->DropDataset("events", {}));
  EXPECT_THAT(exports::ExportDataset(*source, Request(Shape::kRows), *blobs_, Options()),
              testing::FailsWith(absl::StatusCode::kAborted, "was dropped"));
  EXPECT_THAT(Blobs(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace kvstore
