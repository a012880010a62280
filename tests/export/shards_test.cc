#include <string>
#include <vector>

#include "tests/export/export_fixture.h"
#include "tests/migration/migration_fixture.h"

/// Exports of datasets on shards: the same rows as those of an embedded store, in row groups that are sorted.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

class ShardsExportTest : public MigrationTest {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_PARQUET();
    ::setenv("KV_PARQUET", KV_PARQUET_PROGRAM, 1);
    blobs_ = *OpenBlobStore("file:" + (dir_ / "exports").string());
  }

  exports::Manifest Export(const std::string& dataset, const exports::TableOptions& options = {}) {
    Router& router = store_->router();
    const DatasetSpec spec = *router.GetDataset(dataset);
    const auto reader = *(*router.keeper().FindBackend(spec.backend))->OpenUnits(spec);
    const auto source = exports::OpenSnapshot(*reader, spec, std::nullopt, 4);
    EXPECT_OK(source);
    const auto made =
        exports::ExportDataset(**source, {.dataset = dataset, .shape = spec.shape, .options = options},
                               *blobs_, {.program = KV_PARQUET_PROGRAM, .token = "", .lanes = 2});
    EXPECT_OK(made);
    return *made;
  }
  /// The lines of each file.
  std::vector<std::vector<std::string>> Lines(const exports::Manifest& manifest) {
    std::vector<std::vector<std::string>> files;
    for (const exports::ExportedFile& file : manifest.files) {
      const auto fetched = *exports::FetchFile(*blobs_, manifest.id + "/" + file.path,
                                               {.size = file.size, .checksum = file.checksum});
      const auto lines =
          *exports::ParquetLines::Open(fetched.get(), {std::string(Name(manifest.request.shape))});
      cli::LineReader reader(lines->file(), size_t{64} << 20, [] { return absl::OkStatus(); });
      files.emplace_back();
      for (std::string line; *reader.Next(line) == cli::LineReader::Result::kLine;)
        files.back().push_back(line);
      EXPECT_OK(lines->Finish());
    }
    return files;
  }

  std::unique_ptr<BlobStore> blobs_;
};

TEST_F(ShardsExportTest, RowsObjectsAndMappingsAreAllThere) {
  Create({.name = "events", .backend = "mysql", .max_versions = 0});
  Create({.name = "pins", .shape = Shape::kObjects, .backend = "mysql", .type = 3});
  Create({.name = "boards", .shape = Shape::kMappings, .backend = "mysql"});
  Router& router = store_->router();
  std::set<std::string> rows;
  std::set<std::string> pins;
  std::set<std::string> boards;
  for (uint64_t i = 0; i < 300; ++i) {
    const std::string row = "row" + std::to_string(i);
    const CellWrite cell{"c", "v", 1 + i};
    ASSERT_OK(router.PutRow("events", row, {&cell, 1}, {}));
    rows.insert(R"({"row":")" + row + R"(","items":[{"column":"c","value":"v","timestamp":)" +
                std::to_string(1 + i) + "}]}");
    ASSERT_OK_AND_ASSIGN(const uint64_t id, router.CreateObject("pins", R"({"n":1})", {}));
    pins.insert(R"({"id":")" + std::to_string(id) + R"(","data":{"n":1}})");
    ASSERT_OK(router.AddMapping("boards", id, 5, i));
    boards.insert(R"({"from":")" + std::to_string(id) + R"(","to":"5","sequence":)" + std::to_string(i) +
                  "}");
  }
  const auto all = [this](const exports::Manifest& manifest) {
    std::set<std::string> lines;
    for (const auto& file : Lines(manifest)) lines.insert(file.begin(), file.end());
    return lines;
  };
  const exports::Manifest events = Export("events");
  EXPECT_TRUE(events.snapshot);
  EXPECT_EQ(events.TotalRows(), 300u);
  EXPECT_EQ(all(events), rows);
  // A file may have rows of several shards; where keys go back, a new row group begins.
  for (const exports::ExportedFile& file : events.files) EXPECT_GE(file.row_groups, 1u);
  EXPECT_EQ(all(Export("pins")), pins);
  EXPECT_EQ(all(Export("boards")), boards);
  EXPECT_EQ(Export("events", {.columns = {{"c"}}}).TotalRows(), 300u);
}

}  // namespace
}  // namespace kvstore::testing
