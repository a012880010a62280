#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "blobstore/open_blob_store.h"
#include "tests/support/processes.h"
#include "tests/support/require.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_dir.h"

/// A folder on a disk that is full: puts fail with RESOURCE_EXHAUSTED and leave nothing, and what is there
/// stays.
namespace kvstore {
namespace {

namespace fs = std::filesystem;

int FillAndFree(const fs::path& disk) {
  if (!testing::MountSmallDisk(disk)) return testing::kCannotMount;
  auto store = OpenBlobStore("file:" + (disk / "store").string());
  REQUIRE(store.ok());
  const std::string bytes(10'000'000, 'x');
  REQUIRE((*store)->Put("a", bytes, PutMode::kIfAbsent).ok());
  REQUIRE((*store)->Put("b", bytes, PutMode::kIfAbsent).ok());
  // The third does not fit; nor does it replace one that is there.
  REQUIRE(absl::IsResourceExhausted((*store)->Put("c", bytes, PutMode::kIfAbsent).status()));
  REQUIRE(absl::IsResourceExhausted((*store)->Put("a", bytes, PutMode::kReplace).status()));
  REQUIRE(absl::IsNotFound((*store)->Stat("c").status()));
  REQUIRE(fs::is_empty(disk / "store/.new"));
  REQUIRE(*(*store)->Get("a", bytes.size()) == bytes);
  // The space that the failed puts had taken is free again.
  REQUIRE((*store)->Put("d", std::string(3'000'000, 'd'), PutMode::kIfAbsent).ok());
  REQUIRE((*store)->Delete("b").ok());
  REQUIRE((*store)->Put("c", bytes, PutMode::kIfAbsent).ok());
  return 0;
}

TEST(BlobsOnAFullDisk, PutsFailAndWhatIsThereStays) {
  const testing::TempDir dir;
  const testing::Exit exit = testing::Wait(testing::Fork([&] { return FillAndFree(dir.path()); }));
  if (exit.code == testing::kCannotMount) GTEST_SKIP() << "this machine lets nobody mount a file system";
  EXPECT_EQ(exit.code, 0);
}

}  // namespace
}  // namespace kvstore
