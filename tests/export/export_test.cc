#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fail_point.h"
#include "json/bytes_json.h"
#include "json/json.h"
#include "kvstore_api/call_scope.h"
#include "tests/export/export_fixture.h"
#include "tests/support/faulty_blobs.h"
#include "tests/support/random.h"

/// Exports of datasets that are in memory, by the real kv-parquet.
namespace kvstore {
namespace {

using absl::StatusCode;
using exports::ExportDataset;
using exports::ExportedFile;
using exports::Manifest;
using exports::TableOptions;
using ::testing::ElementsAre;
using testing::ExportTest;
using testing::FailsWith;
using testing::FakeSource;
using testing::FaultyBlobs;
using ::testing::IsEmpty;
using testing::MappingUnitOf;
using testing::ObjectUnitOf;
using testing::Random;
using testing::RowUnitOf;
using testing::Seed;

class Export : public ExportTest {
 protected:
  void SetUp() override { SKIP_WITHOUT_PARQUET(); }
  void TearDown() override { SetFailPointHook(nullptr); }

  Manifest MustExport(exports::ExportSource& source, Shape shape, TableOptions options = {}) {
    auto made = ExportTest::Export(source, shape, std::move(options));
    EXPECT_OK(made);
    return made.ok() ? *std::move(made) : Manifest();
  }
};

/// The cells in lines of rows: value by row, column and timestamp.
using Cells = std::map<std::string, std::map<std::string, std::map<uint64_t, std::string>>>;
Cells CellsIn(const std::vector<std::string>& lines) {
  Cells cells;
  for (const std::string& line : lines) {
    const Json json = Json::parse(line);
    for (const Json& item : json["items"]) {
      auto& versions = cells[*BytesFromJson(json["row"])][*BytesFromJson(item["column"])];
      const bool is_new =
          versions.emplace(item.value("timestamp", uint64_t{0}), *BytesFromJson(item["value"])).second;
      EXPECT_TRUE(is_new) << line;
    }
  }
  return cells;
}

TEST_F(Export, AnyCellsComeBackAsTheyWere) {
  Random random(Seed("Export.AnyCellsComeBackAsTheyWere"));
  Cells cells;
  for (int i = 0; i < 500; ++i) {
    auto& versions = cells["r" + random.HostileBytes(0, 12)][random.HostileBytes(0, 6)];
    for (uint64_t n = random.Below(3) + 1; n > 0; --n) {
      versions[random.OneIn(2) ? random.Below(9) : kMaxTimestamp - random.Below(9)] =
          random.HostileBytes(0, 30);
    }
  }
  std::map<std::string, Unit> units;
  for (const auto& [row, columns] : cells) {
    for (const auto& [column, versions] : columns) {
      std::vector<Cell> newest_first;
      for (auto at = versions.rbegin(); at != versions.rend(); ++at)
        newest_first.push_back({at->first, at->second});
      Unit unit = RowUnitOf(row, column, std::move(newest_first));
      units.emplace(unit.key, unit);
    }
  }
  // Parts of any size, in order of their keys.
  std::vector<std::vector<FakeSource::Page>> parts(1);
  for (auto& [key, unit] : units) {
    if (random.OneIn(90)) parts.emplace_back();
    if (parts.back().empty() || random.OneIn(20)) parts.back().emplace_back();
    parts.back().back().push_back(unit);
  }
  FakeSource source(parts);
  const Manifest made = MustExport(source, Shape::kRows);
  EXPECT_EQ(CellsIn(Lines(made, {"rows"})), cells);
  EXPECT_EQ(Blobs(), BlobsOf(made));
}

TEST_F(Export, TheManifestSaysWhatIsThere) {
  FakeSource source =
      FakeSource::Of({RowUnitOf("a", "x", {{2, "v"}, {1, "u"}}), RowUnitOf("b", "x", {{1, "w"}})});
  const Manifest made = MustExport(source, Shape::kRows);
  EXPECT_EQ(made.form, "long");
  EXPECT_EQ(made.as_of_ms, source.as_of_ms());
  EXPECT_TRUE(made.snapshot);
  EXPECT_EQ(made.TotalRows(), 3u);
  ASSERT_EQ(made.files.size(), 1u);
  EXPECT_EQ(made.files[0].row_groups, 1u);
  EXPECT_EQ(made.columns.size(), 4u);
  ASSERT_OK_AND_ASSIGN(const Manifest read, exports::ReadManifest(*blobs_, made.id));
  EXPECT_EQ(read, made);
  ASSERT_OK_AND_ASSIGN(const BlobInfo info, blobs_->Stat(made.id + "/" + made.files[0].path));
  EXPECT_EQ(info.size, made.files[0].size);
}

TEST_F(Export, WideRowsComeBack) {
  FakeSource source =
      FakeSource::Of({RowUnitOf("a", "n", {{5, "7"}, {1, "6"}}), RowUnitOf("a", "s", {{9, "x"}}),
                      RowUnitOf("b", "other", {{1, "w"}}), RowUnitOf("c", "s", {{1, ""}})});
  const Manifest made = MustExport(
      source, Shape::kRows,
      {.columns = {{"n", pipe::ColumnType::kInt64}, {"s", pipe::ColumnType::kText}}, .text = true});
  EXPECT_THAT(
      Lines(made, {"rows", "--time", "3"}),
      ElementsAre(
          R"({"row":"a","items":[{"column":"n","value":"7","timestamp":3},{"column":"s","value":"x","timestamp":3}]})",
          R"({"row":"c","items":[{"column":"s","value":"","timestamp":3}]})"));
  EXPECT_THAT(Lines(made, {"rows", "--without", "n"}),
              ElementsAre(R"({"row":"a","items":[{"column":"s","value":"x"}]})",
                          R"({"row":"c","items":[{"column":"s","value":""}]})"));
}

TEST_F(Export, ObjectsAndMappingsComeBack) {
  const uint64_t id = uint64_t{5} << 36 | 7;
  FakeSource objects = FakeSource::Of({ObjectUnitOf(id, 9, "{\"n\": 18446744073709551616,\n \"s\":1}")});
  const Manifest pins = MustExport(objects, Shape::kObjects, {.columns = {{"s", pipe::ColumnType::kInt64}}});
  EXPECT_THAT(Lines(pins, {"objects"}), ElementsAre("{\"id\":\"" + std::to_string(id) +
                                                    "\",\"data\":{\"n\": 18446744073709551616,  \"s\":1}}"));
  FakeSource mappings = FakeSource::Of({MappingUnitOf(5, 6, 7), MappingUnitOf(5, kMaxId, kMaxTimestamp)});
  const Manifest boards = MustExport(mappings, Shape::kMappings);
  EXPECT_THAT(Lines(boards, {"mappings"}),
              ElementsAre(R"({"from":"5","to":"6","sequence":7})",
                          R"({"from":"5","to":"4611686018427387903","sequence":9223372036854775807})"));
}

TEST_F(Export, AFileWithoutRowsHasTheColumns) {
  FakeSource source({{}, {}, {}});
  const Manifest made = MustExport(source, Shape::kMappings);
  EXPECT_EQ(made.TotalRows(), 0u);
  ASSERT_EQ(made.files.size(), 1u);
  EXPECT_THAT(Lines(made, {"mappings"}), IsEmpty());
}

TEST_F(Export, ARowGroupIsSorted) {
  const auto part = [](const std::string& row) {
    return std::vector<FakeSource::Page>{{RowUnitOf(row, "c", {{1, row}})}};
  };
  const auto row_groups = [&](FakeSource source) {
    const auto made = ExportDataset(source, Request(Shape::kRows), *blobs_, Options("", 1));
    EXPECT_OK(made);
    return made.ok() ? made->files.at(0).row_groups : 0;
  };
  EXPECT_EQ(row_groups(FakeSource({part("a"), part("b"), part("c")})), 1u);
  // As of shards, each of which has all kinds of rows.
  EXPECT_EQ(row_groups(FakeSource({part("a"), part("c"), part("b"), part("d"), part("a")})), 3u);
}

TEST_F(Export, LargeDatasetsAreCutIntoFiles) {
  // Bytes that do not compress: 56 pages of 1 MiB.
  Random random(1);
  std::vector<FakeSource::Page> pages;
  for (int i = 0; i < 56; ++i) {
    std::string value;
    while (value.size() < size_t{1} << 20) AppendBigEndian(value, random.Next());
    pages.push_back({RowUnitOf("row" + std::to_string(100 + i), "c", {{1, std::move(value)}})});
  }
  const Cells cells = [&] {
    Cells all;
    for (const auto& page : pages) all[ParseRowUnitKey(page[0].key)->row]["c"][1] = page[0].cells[0].value;
    return all;
  }();
  FakeSource source({pages});
  const Manifest made = MustExport(source, Shape::kRows);
  EXPECT_EQ(made.files.size(), 2u);
  for (const ExportedFile& file : made.files) EXPECT_LT(file.size, size_t{48} << 20);
  EXPECT_GE(made.files[0].row_groups, 4u);
  EXPECT_TRUE(CellsIn(Lines(made, {"rows"})) == cells);
}

TEST_F(Export, AColumnMayHaveMoreVersionsThanABatchHasRows) {
  std::vector<Cell> versions;
  for (uint64_t t = 300'000; t > 0; --t) versions.push_back({t, "v"});
  FakeSource source = FakeSource::Of({RowUnitOf("r", "c", std::move(versions))});
  const Manifest made = MustExport(source, Shape::kRows);
  EXPECT_EQ(made.TotalRows(), 300'000u);
  EXPECT_EQ(made.files[0].row_groups, 3u);
}

TEST_F(Export, AValueOfAnotherTypeFailsTheExportAndLeavesNothing) {
  // The first lane has put a file by then.
  std::vector<std::vector<FakeSource::Page>> parts;
  parts.push_back({{RowUnitOf("a", "n", {{1, "1"}})}});
  parts.push_back({{RowUnitOf("b", "n", {{1, "x"}})}});
  FakeSource source(std::move(parts));
  EXPECT_THAT(ExportTest::Export(source, Shape::kRows, {.columns = {{"n", pipe::ColumnType::kInt64}}}),
              FailsWith(StatusCode::kFailedPrecondition, "row 'b' column 'n': 'x'"));
  EXPECT_THAT(Blobs(), IsEmpty());
}

TEST_F(Export, AStoreOfBlobsThatFailsLeavesNoManifest) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}})});
  for (const char* part : {".parquet", "manifest.json"}) {
    FaultyBlobs faulty(*blobs_, [&](std::string_view call, std::string_view name) {
      return call == "put" && name.ends_with(part) ? absl::UnavailableError("no disk") : absl::OkStatus();
    });
    EXPECT_THAT(ExportDataset(source, Request(Shape::kRows), faulty, Options()),
                FailsWith(StatusCode::kUnavailable, "no disk"))
        << part;
    EXPECT_THAT(Blobs(), ::testing::Each(::testing::EndsWith(".parquet"))) << part;
    // Files whose manifest was put, as far as the call can know, are not removed.
    EXPECT_THAT(Blobs(), ::testing::SizeIs(part == std::string_view(".parquet") ? 0 : 1)) << part;
  }
}

TEST_F(Export, AnExportWhoseLastAnswerIsLostKeepsItsFiles) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}})});
  FaultyBlobs faulty(*blobs_, nullptr, [](std::string_view, std::string_view name) {
    return name.ends_with("manifest.json") ? absl::UnavailableError("reset") : absl::OkStatus();
  });
  EXPECT_THAT(ExportDataset(source, Request(Shape::kRows), faulty, Options("monday")),
              FailsWith(StatusCode::kUnavailable, "reset"));
  FakeSource later = FakeSource::Of({RowUnitOf("b", "x", {{1, "v"}})});
  ASSERT_OK_AND_ASSIGN(const Manifest repeated,
                       ExportDataset(later, Request(Shape::kRows), *blobs_, Options("monday")));
  // It is the first call's export, whole, and the second one leaves nothing of its own.
  EXPECT_EQ(Blobs(), BlobsOf(repeated));
  EXPECT_THAT(CellsIn(Lines(repeated, {"rows"})), ElementsAre(::testing::Key("a")));
}

TEST_F(Export, APutThatWasRepeatedAndFindsItsOwnManifestSucceeds) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}})});
  // A store that sends the request again when the answer is lost, as that of S3 does, finds the blob there.
  FaultyBlobs faulty(*blobs_, nullptr, [](std::string_view, std::string_view name) {
    return name.ends_with("manifest.json") ? absl::AlreadyExistsError("is there") : absl::OkStatus();
  });
  for (const char* token : {"", "monday"}) {
    ASSERT_OK_AND_ASSIGN(const Manifest made,
                         ExportDataset(source, Request(Shape::kRows), faulty, Options(token)));
    EXPECT_THAT(Blobs(), ::testing::IsSupersetOf(BlobsOf(made))) << token;
  }
}

TEST_F(Export, ItIsStopped) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}})});
  EXPECT_THAT(ExportDataset(source, Request(Shape::kRows), *blobs_, Options(),
                            [](uint64_t, uint64_t) { return false; }),
              FailsWith(StatusCode::kCancelled, "stopped"));
  std::atomic<bool> cancelled{true};
  const CallScope scope(CallLimits{.deadline = {}, .cancelled = &cancelled});
  EXPECT_THAT(ExportTest::Export(source, Shape::kRows), FailsWith(StatusCode::kCancelled, ""));
  cancelled = false;
  EXPECT_THAT(Blobs(), IsEmpty());
}

TEST_F(Export, OneTokenIsOneExport) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}})});
  EXPECT_EQ(*exports::FindExport(*blobs_, "monday"), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const Manifest first,
                       ExportDataset(source, Request(Shape::kRows), *blobs_, Options("monday")));
  EXPECT_EQ(first.id, "monday");
  ASSERT_OK_AND_ASSIGN(const auto found, exports::FindExport(*blobs_, "monday"));
  EXPECT_EQ(found, first);
  EXPECT_OK(exports::CheckSame(*found, Request(Shape::kRows)));
  EXPECT_THAT(exports::CheckSame(*found, Request(Shape::kRows, {.text = true})),
              FailsWith(StatusCode::kAlreadyExists, "'monday' was used"));
  // A call that did not look gets the same export, and leaves nothing of its own.
  FakeSource later = FakeSource::Of({RowUnitOf("b", "x", {{1, "v"}})});
  ASSERT_OK_AND_ASSIGN(const Manifest second,
                       ExportDataset(later, Request(Shape::kRows), *blobs_, Options("monday")));
  EXPECT_EQ(second, first);
  EXPECT_EQ(Blobs(), BlobsOf(first));
  EXPECT_THAT(ExportDataset(later, Request(Shape::kRows, {.text = true}), *blobs_, Options("monday")),
              FailsWith(StatusCode::kAlreadyExists, "with other options"));
  EXPECT_EQ(Blobs(), BlobsOf(first));
  EXPECT_THAT(exports::FindExport(*blobs_, "../x"),
              FailsWith(StatusCode::kInvalidArgument, "token: must be"));
  EXPECT_THAT(ExportDataset(later, Request(Shape::kRows), *blobs_, Options("a/b")),
              FailsWith(StatusCode::kInvalidArgument, "token: must be"));
}

TEST_F(Export, OfTwoCallsWithOneTokenAtOnceTheFasterWins) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}})});
  absl::StatusOr<Manifest> faster = absl::UnknownError("did not run");
  bool begun = false;
  SetFailPointHook([&](std::string_view point) {
    if (point != "export-manifest" || std::exchange(begun, true)) return;
    faster = ExportDataset(source, Request(Shape::kRows), *blobs_, Options("monday"));
  });
  ASSERT_OK_AND_ASSIGN(const Manifest slower,
                       ExportDataset(source, Request(Shape::kRows), *blobs_, Options("monday")));
  ASSERT_OK(faster);
  EXPECT_EQ(slower, *faster);
  EXPECT_EQ(Blobs(), BlobsOf(slower));
  EXPECT_THAT(CellsIn(Lines(slower, {"rows"})), ::testing::SizeIs(1));
}

TEST_F(Export, AFileIsComparedWithItsChecksumWhenItIsFetched) {
  FakeSource source = FakeSource::Of({RowUnitOf("a", "x", {{1, "v"}})});
  const Manifest made = MustExport(source, Shape::kRows);
  const ExportedFile& file = made.files[0];
  const std::string name = made.id + "/" + file.path;
  EXPECT_THAT(exports::FetchFile(*blobs_, name, {.size = file.size + 1, .checksum = file.checksum}),
              FailsWith(StatusCode::kDataLoss, "bytes"));
  std::string other = file.checksum;
  other[0] = other[0] == '0' ? '1' : '0';
  EXPECT_THAT(exports::FetchFile(*blobs_, name, {.size = file.size, .checksum = other}),
              FailsWith(StatusCode::kDataLoss, "checksum"));
  EXPECT_THAT(exports::FetchFile(*blobs_, name + "x", {.size = 1}), FailsWith(StatusCode::kNotFound, ""));
}

}  // namespace
}  // namespace kvstore
