#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "registry/open.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A disk that fills up: writes fail with RESOURCE_EXHAUSTED, reads go on, nothing acknowledged is lost, and
/// writes resume when space returns. The disk is a file system in memory, mounted for this process alone.
namespace kvstore {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotMount = 77;

#define REQUIRE(condition)                                                       \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      return 1;                                                                  \
    }                                                                            \
  } while (false)

bool MountSmallDisk(const fs::path& dir) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("tmpfs", dir.c_str(), "tmpfs", 0, "size=24m") == 0;
}

absl::Status Put(KVStore& store, int i, size_t bytes) {
  const std::string value = std::to_string(i) + std::string(bytes, 'v');
  const CellWrite cell{"x", value, 1};
  return store.PutRow("rows", "row" + std::to_string(i), {&cell, 1}, {}).status();
}

bool Has(KVStore& store, int i) {
  const auto row = store.GetRow("rows", "row" + std::to_string(i), {});
  return row.ok() && row->items.size() == 1 &&
         row->items[0].cells[0].value.starts_with(std::to_string(i) + "v");
}

/// Takes all space that is left, to the last block.
void Fill(const fs::path& file) {
  std::ofstream out(file, std::ios::binary | std::ios::app);
  const std::string block(4096, 'x');
  while (out << block << std::flush) {
  }
}

int FillAndFree(const fs::path& disk) {
  if (!MountSmallDisk(disk)) {
    std::fprintf(stderr, "cannot mount: %s\n", std::strerror(errno));
    return kCannotMount;
  }
  auto opened = Open({.data = disk / "s"});
  REQUIRE(opened.ok());
  KVStore* store = opened->get();
  REQUIRE(store->CreateDataset({.name = "rows", .compression = Compression::kNone}).ok());
  int written = 0;
  for (; written < 20; ++written) REQUIRE(Put(*store, written, 1000).ok());
  // Full, by somebody else's doing.
  Fill(disk / "ballast");
  absl::Status status;
  int i = written;
  while (status.ok() && i < 100'000) {
    status = Put(*store, i, 1000);
    if (status.ok()) written = ++i;
  }
  REQUIRE(absl::IsResourceExhausted(status));
  for (int again = 0; again < 5; ++again) REQUIRE(absl::IsResourceExhausted(Put(*store, i, 100'000)));
  REQUIRE(absl::IsResourceExhausted(store->CreateDataset({.name = "more"})) ||
          store->GetDataset("more").ok());
  for (int row = 0; row < written; ++row) REQUIRE(Has(*store, row));
  // Space returns: so do writes, without a restart, at once.
  fs::remove(disk / "ballast");
  REQUIRE(Put(*store, written, 1000).ok());
  ++written;
  REQUIRE(store->Compact("rows", nullptr).ok());
  // Full by the store's own doing, in the middle of large writes.
  status = absl::OkStatus();
  while (status.ok()) {
    status = Put(*store, written, 200'000);
    if (status.ok()) ++written;
  }
  REQUIRE(absl::IsResourceExhausted(status));
  for (int row = 0; row < written; ++row) REQUIRE(Has(*store, row));
  opened->reset();
  // Even a full disk can be opened and read, or it says why not and is whole when there is space.
  opened = Open({.data = disk / "s"});
  if (!opened.ok()) {
    REQUIRE(absl::IsResourceExhausted(opened.status()));
    REQUIRE(::mount(nullptr, disk.c_str(), nullptr, MS_REMOUNT, "size=64m") == 0);
    opened = Open({.data = disk / "s"});
    REQUIRE(opened.ok());
  }
  for (int row = 0; row < written; ++row) REQUIRE(Has(**opened, row));
  REQUIRE(::mount(nullptr, disk.c_str(), nullptr, MS_REMOUNT, "size=64m") == 0);
  REQUIRE(Put(**opened, written, 1000).ok());
  REQUIRE(Has(**opened, written));
  opened->reset();
  return 0;
}

TEST(FullDisk, WritesFailAndResumeAndNothingIsLost) {
  const testing::TempDir dir;
  fs::create_directory(dir / "disk");
  const testing::Exit exit = testing::Wait(testing::Fork([&] { return FillAndFree(dir / "disk"); }));
  if (exit.code == kCannotMount) GTEST_SKIP() << "this machine lets nobody mount a file system";
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(exit.code, 0);
}

}  // namespace
}  // namespace kvstore
