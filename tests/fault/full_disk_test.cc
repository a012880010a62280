#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "assembly/open_router.h"
#include "kvstore_api/limits.h"
#include "kvstore_api/open.h"
#include "tests/support/processes.h"
#include "tests/support/require.h"
#include "tests/support/small_disk.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A full disk: writes fail with RESOURCE_EXHAUSTED, reads go on, no acknowledged write is lost, and writes
/// resume when there is space again. The disk is a file system in memory, mounted for this process alone.
namespace kvstore {
namespace {

namespace fs = std::filesystem;

using testing::kCannotMount;
using testing::MountSmallDisk;

constexpr uint64_t kDayMs = 86'400'000;

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

/// Fills the disk to the last block.
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
  // Another file fills the disk.
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
  // Once there is space again, writes succeed at once, without a restart.
  fs::remove(disk / "ballast");
  REQUIRE(Put(*store, written, 1000).ok());
  ++written;
  REQUIRE(store->Compact("rows", nullptr).ok());
  // The store itself fills the disk, in the middle of large writes.
  status = absl::OkStatus();
  while (status.ok()) {
    status = Put(*store, written, 200'000);
    if (status.ok()) ++written;
  }
  REQUIRE(absl::IsResourceExhausted(status));
  for (int row = 0; row < written; ++row) REQUIRE(Has(*store, row));
  opened->reset();
  // A store on a full disk can be opened and read.
  Fill(disk / "ballast");
  opened = Open({.data = disk / "s"});
  REQUIRE(opened.ok());
  for (int row = 0; row < written; ++row) REQUIRE(Has(**opened, row));
  REQUIRE(::mount(nullptr, disk.c_str(), nullptr, MS_REMOUNT, "size=64m") == 0);
  REQUIRE(Put(**opened, written, 1000).ok());
  REQUIRE(Has(**opened, written));
  opened->reset();
  return 0;
}

/// Opens a store with 20 rows, and 5 MB in tables of another dataset, and fills its disk to the last block.
/// Null if that fails.
///
/// keep_ms  DatasetSpec::keep_changes_ms of both.
std::unique_ptr<Router> OpenAndFill(const fs::path& disk, uint64_t keep_ms) {
  auto store = OpenRouter({.data = disk / "s"});
  if (!store.ok() || !(*store)->CreateDataset({.name = "rows", .keep_changes_ms = keep_ms}).ok())
    return nullptr;
  const DatasetSpec large{.name = "large", .keep_changes_ms = keep_ms, .compression = Compression::kNone};
  if (!(*store)->CreateDataset(large).ok()) return nullptr;
  const std::string value(100'000, 'v');
  for (int i = 0; i < 50; ++i) {
    const CellWrite cell{"x", value, 1};
    if (!(*store)->PutRow("large", std::to_string(i), {&cell, 1}, {}).ok()) return nullptr;
  }
  if (!(*store)->Compact("large", nullptr).ok()) return nullptr;
  for (int i = 0; i < 20; ++i) {
    if (!Put(**store, i, 1000).ok()) return nullptr;
  }
  Fill(disk / "ballast");
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    const CellWrite cell{"x", value, 1};
    status = (*store)->PutRow("rows", "last", {&cell, 1}, {}).status();
  }
  return absl::IsResourceExhausted(status) ? *std::move(store) : nullptr;
}

bool HasAll(KVStore& store) {
  for (int row = 0; row < 20; ++row) {
    if (!Has(store, row)) return false;
  }
  return true;
}

/// Checks that a drop makes room, in the process that met the full disk and in the next.
int DropMakesRoom(const fs::path& disk, bool reopen, uint64_t keep_ms) {
  if (!MountSmallDisk(disk)) return kCannotMount;
  auto store = OpenAndFill(disk, keep_ms);
  REQUIRE(store != nullptr);
  if (reopen) {
    store.reset();
    Fill(disk / "ballast");
    auto opened = OpenRouter({.data = disk / "s"});
    REQUIRE(opened.ok());
    store = *std::move(opened);
    // While the reserve is released, a check of whether writes are accepted fails as well.
    REQUIRE(absl::IsResourceExhausted(store->CheckWrites()));
    REQUIRE(absl::IsResourceExhausted(Put(*store, 20, 100'000)));
  }
  REQUIRE(HasAll(*store));
  REQUIRE(store->DropDataset("large", {}).ok());
  REQUIRE(store->CheckWrites().ok());
  REQUIRE(Put(*store, 20, 100'000).ok());
  REQUIRE(HasAll(*store));
  store.reset();
  auto opened = OpenRouter({.data = disk / "s"});
  REQUIRE(opened.ok());
  REQUIRE(HasAll(**opened) && Has(**opened, 20));
  REQUIRE((*opened)->ListDatasets()->size() == 1);
  if (keep_ms > 0) {
    // A write in doubt holds up nobody.
    const auto page = (*opened)->ReadChanges("rows", kChangesFromBegin, {.limit = kMaxListEntries});
    REQUIRE(page.ok() && page->complete_until_ms != 0 && !page->changes.empty());
    const auto* const last = std::get_if<RowChange>(&page->changes.back().what);
    REQUIRE(last != nullptr && last->row == "row20");
  }
  REQUIRE(fs::exists(disk / "s" / "RESERVE"));
  opened->reset();
  return 0;
}

/// Checks a store without a reserve: one of an earlier version, or one whose reserve was used up.
int OpenWithoutReserve(const fs::path& disk) {
  if (!MountSmallDisk(disk)) return kCannotMount;
  auto store = OpenAndFill(disk, /*keep_ms=*/kDayMs);
  REQUIRE(store != nullptr);
  store.reset();
  fs::remove(disk / "s" / "RESERVE");
  Fill(disk / "ballast");
  auto opened = OpenRouter({.data = disk / "s"});
  REQUIRE(opened.ok());
  store = *std::move(opened);
  REQUIRE(HasAll(*store));
  REQUIRE(store->GetRow("large", "7", {})->items.size() == 1);
  REQUIRE(store->ScanRows("rows", {}, {}).ok());
  // The store is open to be read only.
  REQUIRE(absl::IsResourceExhausted(store->CheckWrites()));
  REQUIRE(absl::IsResourceExhausted(Put(*store, 20, 10)));
  REQUIRE(absl::IsResourceExhausted(store->CreateDataset({.name = "more"})));
  REQUIRE(absl::IsResourceExhausted(store->DropDataset("large", {})));
  REQUIRE(absl::IsResourceExhausted(store->ReadChanges("rows", kChangesFromBegin, {}).status()));
  store.reset();
  fs::remove(disk / "ballast");
  opened = OpenRouter({.data = disk / "s"});
  REQUIRE(opened.ok());
  REQUIRE((*opened)->CheckWrites().ok());
  REQUIRE(HasAll(**opened) && Put(**opened, 20, 10).ok());
  opened->reset();
  return 0;
}

void OnASmallDisk(const std::function<int(const fs::path&)>& body) {
  const testing::TempDir dir;
  fs::create_directory(dir / "disk");
  const testing::Exit exit = testing::Wait(testing::Fork([&] { return body(dir / "disk"); }));
  if (exit.code == kCannotMount) GTEST_SKIP() << "this machine lets nobody mount a file system";
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(exit.code, 0);
}

TEST(FullDisk, ADropMakesRoom) {
  OnASmallDisk([](const fs::path& disk) { return DropMakesRoom(disk, /*reopen=*/false, /*keep_ms=*/0); });
}
TEST(FullDisk, ADropMakesRoomWhereChangesAreKept) {
  OnASmallDisk([](const fs::path& disk) { return DropMakesRoom(disk, /*reopen=*/false, kDayMs); });
}
TEST(FullDisk, ADropMakesRoomAfterAnOpenWithoutAnyWhereChangesAreKept) {
  OnASmallDisk([](const fs::path& disk) { return DropMakesRoom(disk, /*reopen=*/true, kDayMs); });
}
TEST(FullDisk, ADropMakesRoomAfterAnOpenWithoutAny) {
  OnASmallDisk([](const fs::path& disk) { return DropMakesRoom(disk, /*reopen=*/true, /*keep_ms=*/0); });
}
TEST(FullDisk, IsReadWithoutAReserveToo) { OnASmallDisk(OpenWithoutReserve); }
TEST(FullDisk, WritesFailAndResumeAndNothingIsLost) { OnASmallDisk(FillAndFree); }

}  // namespace
}  // namespace kvstore
