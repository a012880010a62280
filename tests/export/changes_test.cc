#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "assembly/open_router.h"
#include "export/change_row_maker.h"
#include "export/changes_source.h"
#include "json/json.h"
#include "tests/export/export_fixture.h"
#include "tests/support/random.h"

/// Exports of what has changed since an earlier one.
namespace kvstore {
namespace {

using absl::StatusCode;
using exports::ExportRequest;
using exports::ExportSource;
using exports::Manifest;
using testing::ExportTest;
using testing::FailsWith;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A table of long rows, as whoever reads exports keeps it: the cells of each column of each row.
using Table = std::map<std::string, std::map<std::string, std::map<uint64_t, std::string>>>;

class ChangesExport : public ExportTest {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_PARQUET();
    router_ = *OpenRouter({.data = dir_ / "store"});
  }

  void Create(const std::string& dataset, Shape shape) {
    DatasetSpec spec{.name = dataset, .shape = shape};
    spec.max_versions = shape == Shape::kRows ? 0 : spec.max_versions;
    spec.keep_changes_ms = 3'600'000;
    ASSERT_OK(router_->CreateDataset(spec));
  }
  void Put(const std::string& row, const std::string& column, const std::string& value, uint64_t timestamp) {
    const CellWrite cell{column, value, timestamp};
    ASSERT_OK(router_->PutRow("data", row, {&cell, 1}, {}));
  }
  /// Puts a row of so many cells that its deletion is one change.
  void PutLarge(const std::string& row) {
    std::vector<std::string> columns;
    for (int i = 0; i < 1'100; ++i) columns.push_back("c" + std::to_string(i));
    std::vector<CellWrite> cells;
    for (const std::string& column : columns) cells.push_back({column, "v", 1000});
    ASSERT_OK(router_->PutRow("data", row, cells, {}));
  }
  absl::Status DeleteColumn(const std::string& row, const std::string& column) {
    DeleteOptions options;
    options.columns.emplace({column});
    return router_->DeleteRow("data", row, options);
  }

  Manifest Make(ExportSource& source, ExportRequest request, const std::string& changes) {
    exports::ExportOptions options = Options();
    options.changes = changes;
    const DatasetSpec spec = *router_->GetDataset("data");
    options.max_versions = spec.max_versions;
    options.ttl_ms = spec.ttl_ms;
    auto made = exports::ExportDataset(source, request, *blobs_, options);
    EXPECT_OK(made);
    return made.value_or(Manifest());
  }
  Manifest Whole() {
    const std::string token = *exports::TokenOfNow(*router_, "data");
    const DatasetSpec spec = *router_->GetDataset("data");
    const auto source = *exports::OpenScans(*router_, spec, {}, 4);
    return Make(*source, Request(spec.shape), token);
  }
  ExportRequest Since(const Manifest& base) {
    ExportRequest request = Request(base.request.shape);
    request.since = base.id;
    return request;
  }
  Manifest ChangesSince(const Manifest& base) {
    const std::string token = *exports::TokenOfNow(*router_, "data");
    const auto source = exports::OpenChanges(*router_, *router_->GetDataset("data"), base.changes);
    return Make(*source, Since(base), token);
  }
  /// The rows of an export's table, as JSON without the columns that are null.
  std::vector<std::string> TableOf(const Manifest& manifest) { return Lines(manifest, {"points"}); }

  /// Does with a table what docs/export.md says of an export of changes.
  static void Apply(const std::vector<std::string>& lines, Table& table) {
    for (const std::string& line : lines) {
      const Json row = Json::parse(line);
      if (!row.contains("column")) {
        table.erase(row["row"]);
      } else if (const auto found = table.find(row["row"]); found != table.end()) {
        found->second.erase(row["column"]);
      }
    }
    for (const std::string& line : lines) {
      const Json row = Json::parse(line);
      if (row.value("deleted", false)) continue;
      table[row["row"]][row["column"]][row["timestamp"].get<uint64_t>()] = row["value"];
    }
    for (auto row = table.begin(); row != table.end();) {
      std::erase_if(row->second, [](const auto& column) { return column.second.empty(); });
      row = row->second.empty() ? table.erase(row) : std::next(row);
    }
  }

  std::unique_ptr<Router> router_;
};

TEST_F(ChangesExport, EachColumnThatWasTouchedIsThereOnceAsItIsNow) {
  Create("data", Shape::kRows);
  Put("a", "x", "1", 1000);
  Put("b", "x", "2", 1000);
  Put("c", "x", "3", 1000);
  PutLarge("large");
  const Manifest base = Whole();
  EXPECT_NE(base.changes, "");
  Put("b", "x", "4", 2000);
  Put("b", "x", "5", 3000);
  ASSERT_OK(DeleteColumn("c", "x"));
  Put("d", "y", "6", 1000);
  ASSERT_OK(router_->DeleteRow("data", "d", {}));
  Put("d", "z", "7", 1000);
  ASSERT_OK(router_->DeleteRow("data", "large", {}));
  Put("large", "c1", "8", 1000);
  const Manifest made = ChangesSince(base);
  EXPECT_FALSE(made.snapshot);
  EXPECT_EQ(made.form, "long");
  EXPECT_EQ(made.request.since, base.id);
  EXPECT_THAT(
      TableOf(made),
      UnorderedElementsAre(R"({"row":"b","column":"x","timestamp":3000,"value":"5","deleted":false})",
                           R"({"row":"b","column":"x","timestamp":2000,"value":"4","deleted":false})",
                           R"({"row":"b","column":"x","timestamp":1000,"value":"2","deleted":false})",
                           R"({"row":"c","column":"x","deleted":true})",
                           R"({"row":"d","column":"y","deleted":true})", R"({"row":"large","deleted":true})",
                           R"({"row":"large","column":"c1","timestamp":1000,"value":"8","deleted":false})",
                           R"({"row":"d","column":"z","timestamp":1000,"value":"7","deleted":false})"));
  EXPECT_THAT(TableOf(ChangesSince(made)), IsEmpty());
}

TEST_F(ChangesExport, ExportsOfChangesMakeTheTableThatAWholeOneIs) {
  Create("data", Shape::kRows);
  testing::Random random(testing::Seed("ChangesExport.ExportsOfChangesMakeTheTableThatAWholeOneIs"));
  Manifest last = Whole();
  Table table;
  Apply(TableOf(last), table);
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 60; ++i) {
      const std::string row = "r" + std::to_string(random.Below(12));
      const std::string column = "c" + std::to_string(random.Below(4));
      if (random.OneIn(12)) {
        ASSERT_OK(router_->DeleteRow("data", row, {}));
      } else if (random.OneIn(6)) {
        ASSERT_OK(DeleteColumn(row, column));
      } else {
        Put(row, column, std::to_string(random.Below(1000)), 1000 + random.Below(50));
      }
    }
    // A large row is deleted as a whole in every other round, and in some of these written to again.
    if (round % 2 == 0) PutLarge("large");
    if (round % 2 == 1) {
      ASSERT_OK(router_->DeleteRow("data", "large", {}));
    }
    if (round == 3) Put("large", "c7", "again", 1000);
    last = ChangesSince(last);
    Apply(TableOf(last), table);
    Table whole;
    Apply(TableOf(Whole()), whole);
    ASSERT_EQ(table, whole) << "round " << round;
  }
}

TEST_F(ChangesExport, WhatIsWrittenWhileOneIsMadeIsInTheNext) {
  Create("data", Shape::kRows);
  const Manifest base = Whole();
  Put("a", "x", "1", 1000);
  const std::string token = *exports::TokenOfNow(*router_, "data");
  Put("b", "x", "2", 1000);
  const auto source = exports::OpenChanges(*router_, *router_->GetDataset("data"), base.changes);
  const Manifest made = Make(*source, Since(base), token);
  Put("c", "x", "3", 1000);
  const std::string b = R"({"row":"b","column":"x","timestamp":1000,"value":"2","deleted":false})";
  EXPECT_THAT(
      TableOf(ChangesSince(made)),
      UnorderedElementsAre(b, R"({"row":"c","column":"x","timestamp":1000,"value":"3","deleted":false})"));
}

TEST_F(ChangesExport, ALargeColumnIsThereAsAWhole) {
  Create("data", Shape::kRows);
  const Manifest base = Whole();
  for (uint64_t i = 1; i <= 40; ++i) Put("a", "x", std::string(100'000, 'x'), 1000 + i);
  const auto page = router_->ReadChanges("data", base.changes, {});
  ASSERT_OK(page);
  ASSERT_TRUE(std::get<RowChange>(page->changes.front().what).more) << "a change was to tell a part of it";
  EXPECT_EQ(ChangesSince(base).TotalRows(), 40u);
}

TEST_F(ChangesExport, ObjectsThatAreGoneAreRowsWithTheirIds) {
  Create("data", Shape::kObjects);
  const uint64_t kept = *router_->CreateObject("data", R"({"n":1})", {});
  const uint64_t patched = *router_->CreateObject("data", R"({"n":2})", {});
  const uint64_t gone = *router_->CreateObject("data", R"({"n":3})", {});
  const Manifest base = Whole();
  ASSERT_OK(router_->PatchObject("data", patched, R"({"n":4})", {}));
  ASSERT_OK(router_->DeleteObject("data", gone, /*hard=*/true));
  std::map<uint64_t, Json> rows;
  const Manifest made = ChangesSince(base);
  for (const std::string& line : TableOf(made)) {
    Json row = Json::parse(line);
    rows[row["id"].get<uint64_t>()] = row;
  }
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows.contains(kept));
  EXPECT_EQ(rows[patched]["deleted"], false);
  EXPECT_EQ(Json::parse(rows[patched]["data"].get<std::string>())["n"], 4);
  EXPECT_EQ(rows[gone]["deleted"], true);
  EXPECT_FALSE(rows[gone].contains("data") || rows[gone].contains("timestamp"));
  EXPECT_EQ(rows[gone]["type"], rows[patched]["type"]);
}

TEST_F(ChangesExport, EntriesOfMappingsThatAreGoneAreRowsWithTheirIds) {
  Create("data", Shape::kMappings);
  ASSERT_OK(router_->AddMapping("data", 1, 2, 10));
  ASSERT_OK(router_->AddMapping("data", 1, 3, 11));
  ASSERT_OK(router_->AddMapping("data", 1, 4, 12));
  const Manifest base = Whole();
  ASSERT_OK(router_->AddMapping("data", 1, 3, 20));
  ASSERT_OK(router_->RemoveMapping("data", 1, 4));
  EXPECT_THAT(TableOf(ChangesSince(base)),
              UnorderedElementsAre(R"({"from":1,"to":3,"sequence":20,"deleted":false})",
                                   R"({"from":1,"to":4,"deleted":true})"));
}

TEST_F(ChangesExport, AnExportOfChangesNeedsOneBefore) {
  Create("data", Shape::kRows);
  const Manifest base = Whole();
  const auto kNotFound = StatusCode::kNotFound;
  const DatasetSpec spec = *router_->GetDataset("data");
  DatasetSpec other = spec;
  other.name = "other";
  ExportRequest request = Since(base);
  request.since = "none";
  EXPECT_THAT(exports::FindBase(*blobs_, request, spec).status(),
              FailsWith(kNotFound, "since: there is no export 'none' in file:"));
  request.since = "../x";
  EXPECT_THAT(exports::FindBase(*blobs_, request, spec).status(),
              FailsWith(StatusCode::kInvalidArgument, "since: must be 1 to"));
  EXPECT_THAT(exports::FindBase(*blobs_, Since(base), other).status(),
              FailsWith(StatusCode::kInvalidArgument, "is an export of dataset 'data', not of 'other'"));
  const auto source = *exports::OpenScans(*router_, spec, {}, 4);
  const Manifest without = Make(*source, Request(Shape::kRows), "");
  EXPECT_THAT(exports::FindBase(*blobs_, Since(without), spec).status(),
              FailsWith(StatusCode::kFailedPrecondition, "has no token of changes"));
  EXPECT_EQ(*exports::FindBase(*blobs_, Since(base), spec), base);
}

TEST_F(ChangesExport, SettingsThatHaveChangedSinceAreNoSilentGap) {
  Create("data", Shape::kRows);
  const Manifest base = Whole();
  const auto found = [&](const Manifest& manifest) {
    return exports::FindBase(*blobs_, Since(manifest), *router_->GetDataset("data")).status();
  };
  ASSERT_OK(router_->AlterDataset("data", {.max_versions = 2}));
  EXPECT_THAT(found(base),
              FailsWith(StatusCode::kFailedPrecondition, "since: the dataset's max_versions was 0"));
  EXPECT_THAT(found(base), FailsWith(StatusCode::kFailedPrecondition, "and is 2 now"));
  const Manifest later = Whole();
  EXPECT_OK(found(later));
  ASSERT_OK(router_->AlterDataset("data", {.ttl_ms = 1000}));
  EXPECT_THAT(found(later), FailsWith(StatusCode::kFailedPrecondition, "since: the dataset's ttl_ms was 0"));
  EXPECT_THAT(found(later), FailsWith(StatusCode::kFailedPrecondition, "make a whole export"));
}

TEST_F(ChangesExport, ABaseWithAnotherTableIsRefused) {
  const auto kInvalid = StatusCode::kInvalidArgument;
  Create("data", Shape::kRows);
  const DatasetSpec spec = *router_->GetDataset("data");
  const auto source = *exports::OpenScans(*router_, spec, {}, 4);
  const Manifest wide = Make(*source, Request(Shape::kRows, {.columns = {{"x"}}}), "t0ken");
  EXPECT_THAT(exports::FindBase(*blobs_, Since(wide), spec).status(),
              FailsWith(kInvalid, "is of the form 'wide', and that of its changes would be 'long'"));
  const Manifest base = Whole();
  ExportRequest request = Since(base);
  request.options.text = true;
  EXPECT_THAT(exports::FindBase(*blobs_, request, spec).status(),
              FailsWith(kInvalid, "was made without the option text; make this one without it, too"));
}

TEST_F(ChangesExport, ABaseOfObjectsWithOtherFieldsIsRefused) {
  Create("data", Shape::kObjects);
  const DatasetSpec spec = *router_->GetDataset("data");
  const Manifest base = Whole();
  ExportRequest request = Since(base);
  EXPECT_OK(exports::FindBase(*blobs_, request, spec));
  request.options.columns = {{"n"}};
  EXPECT_THAT(exports::FindBase(*blobs_, request, spec).status(),
              FailsWith(StatusCode::kInvalidArgument, "was made with other columns"));
}

TEST_F(ChangesExport, ChangesThatAreNotKeptAnyMoreAreNotLeftOut) {
  Create("data", Shape::kRows);
  const Manifest base = Whole();
  Put("a", "x", "1", 1000);
  ASSERT_OK(router_->AlterDataset("data", {.keep_changes_ms = 0}));
  ASSERT_OK(router_->AlterDataset("data", {.keep_changes_ms = 3'600'000}));
  const auto source = exports::OpenChanges(*router_, *router_->GetDataset("data"), base.changes);
  EXPECT_THAT(exports::ExportDataset(*source, Since(base), *blobs_, Options()).status(),
              FailsWith(StatusCode::kOutOfRange, ""));
  EXPECT_EQ(Blobs(), BlobsOf(base));
}

TEST_F(ChangesExport, TooManyChangesAreRefused) {
  Create("data", Shape::kRows);
  const Manifest base = Whole();
  for (const char* row : {"a", "b", "a", "b"}) Put(row, "x", "1", 1000);
  const DatasetSpec spec = *router_->GetDataset("data");
  EXPECT_OK(exports::ExportDataset(*exports::OpenChanges(*router_, spec, base.changes, 2), Since(base),
                                   *blobs_, Options()));
  Put("c", "x", "1", 1000);
  EXPECT_THAT(exports::ExportDataset(*exports::OpenChanges(*router_, spec, base.changes, 2), Since(base),
                                     *blobs_, Options())
                  .status(),
              FailsWith(StatusCode::kResourceExhausted, "more than 2 units have changed"));
}

TEST(ChangeOptions, WideRowsAreRefused) {
  using exports::CheckChangeOptions;
  EXPECT_OK(CheckChangeOptions({}, Shape::kRows));
  const exports::TableOptions options{.columns = {{"Deleted"}}};
  EXPECT_THAT(CheckChangeOptions(options, Shape::kRows),
              FailsWith(StatusCode::kInvalidArgument, "leave the columns out"));
  EXPECT_THAT(
      CheckChangeOptions(options, Shape::kObjects),
      FailsWith(StatusCode::kInvalidArgument, "'Deleted' is a column that every export of changes has"));
  EXPECT_OK(CheckChangeOptions({.columns = {{"n"}}}, Shape::kObjects));
}

}  // namespace
}  // namespace kvstore
