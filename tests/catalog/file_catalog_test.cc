#include "catalog/file_catalog.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "catalog/catalog_json.h"
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

TEST(FileCatalog, AChangeOfOneOfManyCostsTheRestNothingButACopy) {
  const TempDir dir;
  FileCatalog catalog(dir / "catalog.json");
  EXPECT_EQ(EncodeCatalog({}), "{\n  \"datasets\": [],\n  \"format\": 1\n}\n");
  std::vector<CatalogEntry> entries;
  for (int i = 0; i < 100; ++i) {
    // The steps of a create: a load, the entry as creating, the entry as active.
    const auto before = catalog.Load();
    ASSERT_OK(before);
    const uint64_t coded = catalog.coded();
    CatalogEntry entry{{.name = "d" + std::to_string(1000 + i), .incarnation = 7}, DatasetState::kCreating};
    const auto version = catalog.Put(entry, before->version);
    ASSERT_OK(version);
    entry.state = DatasetState::kActive;
    ASSERT_OK(catalog.Put(entry, *version));
    EXPECT_EQ(catalog.coded() - coded, 2u);
    entries.push_back(entry);
  }
  EXPECT_EQ(catalog.Load()->entries, entries);
  EXPECT_EQ(ReadFile(dir / "catalog.json"), EncodeCatalog(entries));
  // A file that somebody else has written is read again.
  std::ofstream(dir / "catalog.json") << kGolden;
  EXPECT_EQ(catalog.Load()->entries, GoldenEntries());
  ASSERT_OK(catalog.Remove("none", 200));
  EXPECT_EQ(ReadFile(dir / "catalog.json"), kGolden);
}

TEST(FileCatalog, AChangeThatFailsHasChangedNothing) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "sub");
  FileCatalog catalog(dir / "sub" / "catalog.json");
  ASSERT_OK(catalog.Put(GoldenEntries()[0], 0));
  const std::string text = ReadFile(dir / "sub" / "catalog.json");
  // The new file cannot be written.
  std::filesystem::create_directory(dir / "sub" / "catalog.json.new");
  std::ofstream(dir / "sub" / "catalog.json.new" / "in the way");
  EXPECT_FALSE(catalog.Remove("events", 1).ok());
  EXPECT_FALSE(catalog.Put({{.name = "other", .incarnation = 1}, DatasetState::kActive}, 1).ok());
  EXPECT_EQ(catalog.Load()->entries, GoldenEntries());
  std::filesystem::remove_all(dir / "sub" / "catalog.json.new");
  ASSERT_OK(catalog.Put({{.name = "zebra", .incarnation = 1}, DatasetState::kActive}, 1));
  EXPECT_EQ(catalog.Load()->entries.size(), 2u);
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
    // These changes were decided on an old version.
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

TEST(FileCatalog, AFileThatVanishesIsNotAnEmptyCatalog) {
  const TempDir dir;
  const auto path = dir / "catalog.json";
  FileCatalog writes(path);
  EXPECT_TRUE(writes.Load()->entries.empty());
  ASSERT_OK(writes.Put(GoldenEntries()[0], 0));
  FileCatalog reads(path);
  ASSERT_OK(reads.Load());
  std::filesystem::rename(path, dir / "moved.json");
  for (FileCatalog* const catalog : {&writes, &reads}) {
    EXPECT_THAT(catalog->Load(), FailsWith(absl::StatusCode::kDataLoss, path.string() + " is missing"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // Whoever puts the file back need not restart the process.
  std::filesystem::rename(dir / "moved.json", path);
  for (FileCatalog* const catalog : {&writes, &reads}) EXPECT_EQ(catalog->Load()->entries, GoldenEntries());
  // Nor is one that was damaged before it vanished.
  std::ofstream(path) << "{";
  EXPECT_FALSE(reads.Load().ok());
  std::filesystem::remove(path);
  EXPECT_THAT(reads.Load(), FailsWith(absl::StatusCode::kDataLoss, path.string() + " is missing"));
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
