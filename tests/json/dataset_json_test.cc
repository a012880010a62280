#include "json/dataset_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kvstore_api/dataset.h"
#include "kvstore_api/limits.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(Dataset, AcceptsNamesWithinTheRules) {
  for (const char* name :
       {"a", "Events_2", "a.b-c", "_x", "9", "012345678901234567890123456789012345678901234567"}) {
    EXPECT_OK(Validate({.name = name})) << name;
  }
}

TEST(Dataset, RefusesOtherNames) {
  EXPECT_THAT(Validate({.name = ""}), FailsWith(kInvalid, "1 to 48 bytes, this one has 0"));
  EXPECT_THAT(Validate({.name = std::string(49, 'a')}),
              FailsWith(kInvalid, "1 to 48 bytes, this one has 49"));
  for (const char* name : {"a b", "a/b", ".a", "-a", "h\xC3\xA9", "a\n", "a:b"}) {
    EXPECT_THAT(Validate({.name = name}), FailsWith(kInvalid, "dataset: a name is made of")) << name;
  }
  EXPECT_THAT(Validate({.name = "default"}), FailsWith(kInvalid, "reserved"));
}

TEST(Dataset, RefusesSettingsThatTheShapeDoesNotHave) {
  EXPECT_THAT(Validate({.name = "a", .type = 1}),
              FailsWith(kInvalid, "type: only datasets of shape objects"));
  EXPECT_THAT(Validate({.name = "a", .shape = Shape::kObjects, .type = 1024}),
              FailsWith(kInvalid, "1..1023"));
  EXPECT_THAT(Validate({.name = "a", .shape = Shape::kObjects, .max_versions = 2}),
              FailsWith(kInvalid, "max_versions"));
  EXPECT_THAT(Validate({.name = "a", .shape = Shape::kMappings, .ttl_ms = 1}), FailsWith(kInvalid, "ttl_ms"));
  EXPECT_THAT(Validate({.name = "a", .ttl_ms = kMaxTimestamp + 1}),
              FailsWith(kInvalid, "ttl_ms: 9223372036854775808"));
}

TEST(Dataset, AppliesAChange) {
  const DatasetSpec spec{.name = "a", .max_versions = 3, .ttl_ms = 7};
  EXPECT_EQ(Apply(spec, {}), spec);
  const DatasetSpec changed = Apply(spec, {.max_versions = 0, .durability = Durability::kMachine});
  EXPECT_EQ(changed.max_versions, 0u);
  EXPECT_EQ(changed.ttl_ms, 7u);
  EXPECT_EQ(changed.durability, Durability::kMachine);
}

TEST(Dataset, NamesOfValuesComeBack) {
  for (const Shape shape : {Shape::kRows, Shape::kObjects, Shape::kMappings})
    EXPECT_EQ(ParseShape(Name(shape)), shape);
  for (const Durability durability : {Durability::kProcess, Durability::kMachine}) {
    EXPECT_EQ(ParseDurability(Name(durability)), durability);
  }
  for (const Compression compression : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    EXPECT_EQ(ParseCompression(Name(compression)), compression);
  }
  EXPECT_EQ(ParseShape("ROWS"), std::nullopt);
  EXPECT_EQ(ParseDurability(""), std::nullopt);
}

TEST(DatasetJson, Golden) {
  const DatasetSpec rows{
      .name = "events", .backend = "rocksdb", .max_versions = 50, .ttl_ms = 1000, .incarnation = 9};
  EXPECT_EQ(
      DatasetToJson(rows).dump(),
      R"({"backend":"rocksdb","blob_threshold":0,"compression":"lz4","dataset":"events","durability":"process",)"
      R"("max_versions":50,"shape":"rows","ttl_ms":1000})");
  const DatasetSpec objects{.name = "pins",
                            .shape = Shape::kObjects,
                            .backend = "rocksdb",
                            .type = 7,
                            .durability = Durability::kMachine};
  EXPECT_EQ(DatasetToJson(objects)["type"], 7);
}

TEST(DatasetJson, ReadsBackWhatItWrote) {
  const DatasetSpec spec{.name = "pins",
                         .shape = Shape::kObjects,
                         .backend = "rocksdb",
                         .type = 7,
                         .durability = Durability::kMachine,
                         .compression = Compression::kZstd,
                         .blob_threshold = 4096};
  const Json json = DatasetToJson(spec);
  JsonFields fields(json, "");
  EXPECT_EQ(DatasetFromFields(fields, /*stored_fields=*/true), spec);
  EXPECT_OK(fields.Finish());
}

TEST(DatasetJson, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {R"({})", R"({"dataset": 1})", R"({"dataset": "a", "shape": "table"})",
        R"({"dataset": "a", "max_versions": -1})", R"({"dataset": "a", "max_versions": 4294967296})",
        R"({"dataset": "a", "durability": "disk"})", R"({"dataset": "a", "type": 0})",
        R"({"dataset": "a", "type": 1024})", R"({"dataset": "a", "colour": "red"})"}) {
    const Json json = Json::parse(text);
    JsonFields fields(json, "");
    DatasetFromFields(fields, /*stored_fields=*/false);
    EXPECT_THAT(fields.Finish(), FailsWith(kInvalid, "")) << text;
  }
}

}  // namespace
}  // namespace kvstore
