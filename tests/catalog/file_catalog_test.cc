#include "kvstore_api/file_catalog.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "kvstore_api/catalog_json.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

using testing::FailsWith;
using testing::TempDir;

constexpr char kGolden[] = R"({
  "datasets": [
    {
      "backend": "rocksdb",
      "blob_threshold": 0,
      "compression": "lz4",
      "dataset": "events",
      "durability": "process",
      "incarnation": "18446744073709551615",
      "max_versions": 50,
      "shape": "rows",
      "state": "active",
      "ttl_ms": 0
    }
  ],
  "format": 1
}
)";

std::vector<CatalogEntry> GoldenEntries() {
  return {{{.name = "events", .backend = "rocksdb", .max_versions = 50, .incarnation = UINT64_MAX},
           DatasetState::kActive}};
}

std::string ReadFile(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(FileCatalog, Golden) {
  EXPECT_EQ(EncodeCatalog(GoldenEntries()), kGolden);
  EXPECT_EQ(*DecodeCatalog(kGolden), GoldenEntries());
}

TEST(FileCatalog, KeepsEntriesAcrossARestart) {
  const TempDir dir;
  const CatalogEntry a{{.name = "a", .incarnation = 1}, DatasetState::kCreating};
  const CatalogEntry b{{.name = "b", .shape = Shape::kObjects, .type = 3, .incarnation = 2},
                       DatasetState::kDropping};
  {
    FileCatalog catalog(dir / "catalog.json");
    EXPECT_TRUE(catalog.Load()->entries.empty());
    EXPECT_EQ(*catalog.Put(b, 0), 1);
    EXPECT_EQ(*catalog.Put(a, 1), 2);
    // Decided on what is no more so.
    EXPECT_THAT(catalog.Put({a.spec, DatasetState::kActive}, 1),
                FailsWith(absl::StatusCode::kAborted, "changed"));
    ASSERT_OK(catalog.Put({a.spec, DatasetState::kActive}, 2));
  }
  FileCatalog catalog(dir / "catalog.json");
  EXPECT_EQ(catalog.Load()->entries, (std::vector<CatalogEntry>{{a.spec, DatasetState::kActive}, b}));
  ASSERT_OK(catalog.Remove("a", 0));
  ASSERT_OK(catalog.Remove("a", 1));
  EXPECT_EQ(FileCatalog(dir / "catalog.json").Load()->entries.size(), 1u);
}

TEST(FileCatalog, RefusesDamageAndLeavesTheFile) {
  const TempDir dir;
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"format\":1}"),
        std::string(kGolden).replace(60, 7, "mongodb").erase(100, 3),
        std::string(R"({"format":1,"datasets":[{"dataset":"a"}]})")}) {
    std::ofstream(dir / "catalog.json") << text;
    EXPECT_THAT(FileCatalog(dir / "catalog.json").Load(),
                FailsWith(absl::StatusCode::kDataLoss, "catalog.json"))
        << text;
    EXPECT_EQ(ReadFile(dir / "catalog.json"), text);
  }
}

TEST(FileCatalog, RefusesANewerFormat) {
  const TempDir dir;
  std::ofstream(dir / "catalog.json") << R"({"format":2,"datasets":[]})";
  EXPECT_THAT(FileCatalog(dir / "catalog.json").Load(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "format 2 was written by a newer version"));
}

TEST(FileCatalog, AWriteThatFailsChangesNothing) {
  const TempDir dir;
  FileCatalog catalog(dir / "gone" / "catalog.json");
  EXPECT_THAT(catalog.Put(GoldenEntries()[0], 0), FailsWith(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_FALSE(std::filesystem::exists(dir / "gone"));
}

}  // namespace
}  // namespace kvstore
