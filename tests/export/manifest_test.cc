#include "export/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "blobstore/open_blob_store.h"
#include "json/json.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::exports {
namespace {

using absl::StatusCode;
using pipe::ColumnType;
using testing::FailsWith;

Manifest Sample() {
  return {.id = "monday",
          .token = "monday",
          .request = {.dataset = "events",
                      .shape = Shape::kRows,
                      .options = {.columns = {{"n", ColumnType::kInt64}}, .text = true},
                      .from = "backup",
                      .at_ms = 5},
          .form = "wide",
          .snapshot = true,
          .as_of_ms = 4,
          .began_ms = 6,
          .finished_ms = 7,
          .host = "ann@ops1",
          .version = "0.1.0",
          .data = "1a2b3c4d",
          .columns = {{"row", ColumnType::kText, false}, {"n", ColumnType::kInt64, true}},
          .files = {{"1a2b3c4d/part-00000-00000.parquet", 10, 1, 700, "ab"},
                    {"1a2b3c4d/part-00001-00000.parquet", 5, 2, 300, "cd"}}};
}

TEST(ExportManifest, HasThisForm) {
  EXPECT_EQ(Json::parse(EncodeManifest(Sample())), Json::parse(R"({
    "format": 1, "id": "monday", "token": "monday",
    "request": {"dataset": "events", "shape": "rows", "columns": ["n:int64"], "text": true, "from": "backup", "at_ms": 5},
    "form": "wide", "snapshot": true, "as_of_ms": 4, "began_ms": 6, "finished_ms": 7, "host": "ann@ops1",
    "version": "0.1.0", "data": "1a2b3c4d", "rows": 15, "bytes": 1000,
    "columns": [{"name": "row", "type": "string", "nullable": false}, {"name": "n", "type": "int64", "nullable": true}],
    "files": [
      {"path": "1a2b3c4d/part-00000-00000.parquet", "rows": 10, "row_groups": 1, "size": 700, "checksum": "ab"},
      {"path": "1a2b3c4d/part-00001-00000.parquet", "rows": 5, "row_groups": 2, "size": 300, "checksum": "cd"}]})"));
}

TEST(ExportManifest, OfChangesHasThisForm) {
  Manifest manifest = Sample();
  manifest.request.since = "sunday";
  manifest.changes = "t0ken";
  Json json = Json::parse(EncodeManifest(manifest));
  EXPECT_EQ(*DecodeManifest(json.dump(), "monday"), manifest);
  EXPECT_EQ(json["format"], 2) << "a program that knows only whole exports must refuse it";
  EXPECT_EQ(json["changes"], "t0ken");
  EXPECT_EQ(json["request"]["since"], "sunday");
  json["request"].erase("since");
  EXPECT_THAT(DecodeManifest(json.dump(), "monday"), FailsWith(StatusCode::kDataLoss, "format"));
  json["request"]["since"] = "../x";
  EXPECT_THAT(DecodeManifest(json.dump(), "monday"), FailsWith(StatusCode::kDataLoss, "request.since"));
  manifest.request.since.clear();
  json = Json::parse(EncodeManifest(manifest));
  EXPECT_EQ(json["format"], 1) << "any program can read a whole export";
  EXPECT_EQ(json["changes"], "t0ken");
  json["request"]["since"] = "sunday";
  EXPECT_THAT(DecodeManifest(json.dump(), "monday"), FailsWith(StatusCode::kDataLoss, "format"));
}

TEST(ExportManifest, SettingsOfTheDatasetAreWrittenWithTheTokenOfChanges) {
  Manifest manifest = Sample();
  manifest.max_versions = 0;
  manifest.ttl_ms = 86'400'000;
  EXPECT_EQ(*DecodeManifest(EncodeManifest(manifest), "monday"), Sample());
  manifest.changes = "t0ken";
  Json json = Json::parse(EncodeManifest(manifest));
  EXPECT_EQ(json["max_versions"], 0);
  EXPECT_EQ(json["ttl_ms"], 86'400'000);
  EXPECT_EQ(*DecodeManifest(json.dump(), "monday"), manifest);
  json["max_versions"] = uint64_t{1} << 32;
  EXPECT_THAT(DecodeManifest(json.dump(), "monday"), FailsWith(StatusCode::kDataLoss, "max_versions"));
  json.erase("max_versions");
  json.erase("ttl_ms");
  manifest.max_versions.reset();
  manifest.ttl_ms.reset();
  EXPECT_EQ(*DecodeManifest(json.dump(), "monday"), manifest) << "an earlier version wrote none";
}

TEST(ExportManifest, IsReadBack) {
  Manifest manifest = Sample();
  manifest.columns = {{"a", ColumnType::kBytes},     {"b", ColumnType::kText},   {"c", ColumnType::kInt64},
                      {"d", ColumnType::kInt32},     {"e", ColumnType::kDouble}, {"f", ColumnType::kBool},
                      {"g", ColumnType::kTime, true}};
  ASSERT_OK_AND_ASSIGN(const Manifest read, DecodeManifest(EncodeManifest(manifest), "monday"));
  EXPECT_EQ(read, manifest);
  manifest.files.clear();
  EXPECT_EQ(*DecodeManifest(EncodeManifest(manifest), "monday"), manifest);
}

TEST(ExportManifest, AFieldOfALaterVersionIsNotRead) {
  Json json = Json::parse(EncodeManifest(Sample()));
  json["later"] = 1;
  json["files"][0]["later"] = 1;
  EXPECT_EQ(*DecodeManifest(json.dump(), "monday"), Sample());
}

TEST(ExportManifest, DamageIsNamed) {
  const Json good = Json::parse(EncodeManifest(Sample()));
  const auto with = [&](const Json::json_pointer& place, const Json& value) {
    Json changed = good;
    changed[place] = value;
    return DecodeManifest(changed.dump(), "monday");
  };
  const auto damaged = [](const std::string& text) { return FailsWith(StatusCode::kDataLoss, text); };
  EXPECT_THAT(DecodeManifest("", "monday"), damaged("monday/manifest.json"));
  EXPECT_THAT(DecodeManifest("[]", "monday"), damaged("monday/manifest.json"));
  EXPECT_THAT(DecodeManifest("{}", "monday"), damaged("format"));
  EXPECT_THAT(DecodeManifest(good.dump(), "tuesday"), damaged("it is of another export"));
  EXPECT_THAT(with(Json::json_pointer("/format"), 3),
              FailsWith(StatusCode::kFailedPrecondition, "a newer version"));
  EXPECT_THAT(with(Json::json_pointer("/request"), 2), damaged("request"));
  EXPECT_THAT(with(Json::json_pointer("/request/shape"), "x"), damaged("request.shape"));
  EXPECT_THAT(with(Json::json_pointer("/request/columns"), Json::array({1})), damaged("request.columns"));
  EXPECT_THAT(with(Json::json_pointer("/columns/0/type"), "int128"), damaged("columns[0].type"));
  EXPECT_THAT(with(Json::json_pointer("/files/0"), 3), damaged("files[0]"));
  EXPECT_THAT(with(Json::json_pointer("/files/0/size"), -1), damaged("files[0].size"));
  EXPECT_THAT(with(Json::json_pointer("/files/0/checksum"), ""), damaged("files[0].checksum"));
  EXPECT_THAT(with(Json::json_pointer("/files/1/path"), "1a2b3c4d/part-00000-00000.parquet"),
              damaged("is there twice"));
  for (const char* path : {"../x", "/etc/passwd", "a/../b", "", "a//b", ".new/x"}) {
    EXPECT_THAT(with(Json::json_pointer("/files/0/path"), path), damaged("files[0].path")) << path;
  }
}

TEST(ExportManifest, AnyBytesAreRefusedOrRead) {
  testing::Random random(testing::Seed("ExportManifest.AnyBytesAreRefusedOrRead"));
  const std::string good = EncodeManifest(Sample());
  for (int i = 0; i < 5'000; ++i) {
    std::string text = good.substr(0, random.OneIn(4) ? random.Below(good.size()) : good.size());
    for (uint64_t n = 1 + random.Below(3); n > 0 && !text.empty(); --n) {
      text[random.Below(text.size())] = static_cast<char>(random.Below(128));
    }
    const auto read = DecodeManifest(text, "monday");
    if (read.ok()) {
      EXPECT_EQ(read->id, "monday");
    }
  }
}

TEST(ExportManifest, IdsAreNamesOfFolders) {
  for (const char* id : {"a", "monday", "2026-11-25", "20261124T031459Z-1a2b3c4d", "_x"})
    EXPECT_OK(CheckExportId(id)) << id;
  for (const std::string& id : {std::string(), std::string("a/b"), std::string(".."), std::string("a.b"),
                                std::string("a b"), std::string(101, 'a'), std::string("\xC3\xA4")}) {
    EXPECT_THAT(CheckExportId(id), FailsWith(StatusCode::kInvalidArgument, "letters, digits"));
  }
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto blobs, OpenBlobStore("file:" + dir.path().string()));
  EXPECT_THAT(ReadManifest(*blobs, "none"), FailsWith(StatusCode::kNotFound, "none"));
}

}  // namespace
}  // namespace kvstore::exports
