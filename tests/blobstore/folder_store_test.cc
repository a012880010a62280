#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "blobstore/open_blob_store.h"
#include "tests/blobstore/blob_suite.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace {

/// The inode whose flushes are counted, and how many there were.
std::atomic<ino_t> watched{0};
std::atomic<int> flushes{0};

}  // namespace

/// Takes the place of the C library's, so that a test sees which folders are flushed.
extern "C" int fsync(int file) {
  struct stat status {};
  if (::fstat(file, &status) == 0 && status.st_ino == watched) ++flushes;
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace kvstore {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using testing::BlobSuite;
using testing::FailsWith;
using testing::TempDir;

std::unique_ptr<BlobStore> MustOpen(const fs::path& path) {
  auto store = OpenBlobStore("file:" + path.string());
  EXPECT_OK(store);
  return store.ok() ? *std::move(store) : nullptr;
}

testing::BlobStoreKind Folders() {
  const auto dir = std::make_shared<TempDir>();
  return {.name = "folder", .open = [dir](const std::string& prefix) { return MustOpen(*dir / prefix); }};
}

INSTANTIATE_TEST_SUITE_P(Folder, BlobSuite, ::testing::Values(Folders()), [](const auto&) { return "file"; });

fs::perms Mode(const fs::path& path) { return fs::symlink_status(path).permissions() & fs::perms::mask; }

std::string Content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(FolderStore, OnlyItsOwnerCanReadIt) {
  const TempDir dir;
  const mode_t before = ::umask(0);
  const auto store = MustOpen(dir / "new");
  ASSERT_OK(store->Put("a/b", "secret", PutMode::kIfAbsent));
  ASSERT_OK(store->Put("c", "secret", PutMode::kReplace));
  ::umask(before);
  for (const char* folder : {"new", "new/a", "new/.new"})
    EXPECT_EQ(Mode(dir / folder), fs::perms::owner_all) << folder;
  for (const char* file : {"new/a/b", "new/c"}) {
    EXPECT_EQ(Mode(dir / file), fs::perms::owner_read | fs::perms::owner_write) << file;
  }
}

TEST(FolderStore, ANewFolderIsDurable) {
  const TempDir dir;
  struct stat status {};
  ASSERT_EQ(::stat(dir.path().c_str(), &status), 0);
  watched = status.st_ino;
  flushes = 0;
  ASSERT_NE(MustOpen(dir / "new"), nullptr);
  EXPECT_EQ(flushes, 1);
  // A folder that is there already is not flushed again.
  ASSERT_NE(MustOpen(dir / "new"), nullptr);
  EXPECT_EQ(flushes, 1);
  watched = 0;
}

TEST(FolderStore, LinksAreNotFollowed) {
  const TempDir dir;
  fs::create_directory(dir / "outside");
  std::ofstream(dir / "outside/victim") << "as it was";
  const auto store = MustOpen(dir / "store");
  fs::create_directory_symlink(dir / "outside", dir / "store/folder");
  fs::create_symlink(dir / "outside/victim", dir / "store/file");

  const auto refused = StatusCode::kFailedPrecondition;
  EXPECT_THAT(store->Put("folder/new", "x", PutMode::kReplace), FailsWith(refused, "folder"));
  EXPECT_THAT(store->Get("folder/victim", 100), FailsWith(refused, "folder"));
  EXPECT_THAT(store->Delete("folder/victim"), FailsWith(refused, "folder"));
  EXPECT_THAT(store->Get("file", 100), FailsWith(refused, "file"));
  EXPECT_TRUE(store->List("", "", 10)->blobs.empty());
  // A put replaces the link, not what it leads to.
  EXPECT_THAT(store->Put("file", "x", PutMode::kIfAbsent), FailsWith(StatusCode::kAlreadyExists, "file"));
  ASSERT_OK(store->Put("file", "x", PutMode::kReplace));
  EXPECT_EQ(Content(dir / "outside/victim"), "as it was");
  EXPECT_FALSE(fs::is_symlink(dir / "store/file"));
  EXPECT_FALSE(fs::exists(dir / "outside/new"));
}

TEST(FolderStore, WhatAKilledProcessWasPuttingIsRemovedAndWhatAnotherPutsIsNot) {
  const TempDir dir;
  const auto store = MustOpen(dir.path());
  std::ofstream(dir / ".new/dead") << "half of it";
  bool was_there = false;
  int parts = 0;
  const auto source = [&](std::span<char> buffer) -> absl::StatusOr<size_t> {
    if (++parts > 2) return 0;
    // Somebody else opens the store in the middle of this put.
    was_there = was_there || fs::exists(dir / ".new/dead");
    MustOpen(dir.path());
    EXPECT_FALSE(fs::exists(dir / ".new/dead"));
    buffer[0] = 'x';
    return 1;
  };
  ASSERT_OK(store->PutStream("alive", source, PutMode::kIfAbsent));
  EXPECT_TRUE(was_there);
  EXPECT_EQ(*store->Get("alive", 10), "xx");
  EXPECT_TRUE(fs::is_empty(dir / ".new"));
}

TEST(FolderStore, APutLeavesNoOtherNameBehind) {
  const TempDir dir;
  const auto store = MustOpen(dir.path());
  ASSERT_OK(store->Put("a", "1", PutMode::kIfAbsent));
  EXPECT_FALSE(store->Put("a", "2", PutMode::kIfAbsent).ok());
  ASSERT_OK(store->Put("a", "3", PutMode::kReplace));
  EXPECT_TRUE(fs::is_empty(dir / ".new"));
  EXPECT_EQ(fs::hard_link_count(dir / "a"), 1u);
}

TEST(FolderStore, ABlobCannotBeTheFolderOfAnother) {
  const TempDir dir;
  const auto store = MustOpen(dir.path());
  ASSERT_OK(store->Put("a/b", "1", PutMode::kIfAbsent));
  EXPECT_THAT(store->Put("a", "2", PutMode::kIfAbsent),
              FailsWith(StatusCode::kFailedPrecondition, "folder of this name"));
  EXPECT_THAT(store->Put("a", "2", PutMode::kReplace),
              FailsWith(StatusCode::kFailedPrecondition, "folder of this name"));
  EXPECT_THAT(store->Put("a/b/c", "2", PutMode::kReplace), FailsWith(StatusCode::kFailedPrecondition, "a/b"));
  EXPECT_THAT(store->Get("a", 10), FailsWith(StatusCode::kNotFound, "a"));
}

TEST(FolderStore, FilesThatAreNoBlobsAreNotListed) {
  const TempDir dir;
  const auto store = MustOpen(dir.path());
  ASSERT_OK(store->Put("a/b", "1", PutMode::kIfAbsent));
  std::ofstream(dir / "a/.hidden") << "x";
  std::ofstream(dir / "with space") << "x";
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  ASSERT_OK_AND_ASSIGN(const BlobPage page, store->List("", "", 10));
  ASSERT_EQ(page.blobs.size(), 1u);
  EXPECT_EQ(page.blobs[0].name, "a/b");
  // Opening a pipe would wait for a writer.
  EXPECT_THAT(store->Get("pipe", 10), FailsWith(StatusCode::kNotFound, "pipe"));
}

TEST(FolderStore, WhatCannotBeOpenedIsSaid) {
  const TempDir dir;
  std::ofstream(dir / "file") << "x";
  EXPECT_THAT(OpenBlobStore("file:" + (dir / "none/store").string()),
              FailsWith(StatusCode::kUnavailable, "No such file"));
  EXPECT_THAT(OpenBlobStore("file:" + (dir / "file").string()),
              FailsWith(StatusCode::kFailedPrecondition, "Not a directory"));
  const fs::path none = dir / "none";
  EXPECT_THAT(OpenBlobStore("file:" + none.string(), {}, MissingFolder::kRefuse),
              FailsWith(StatusCode::kNotFound, none.string() + ": there is no such folder"));
  EXPECT_FALSE(fs::exists(none));
  for (const char* url : {"", "file:", "ftp://x", "/tmp", "S3://bucket"}) {
    EXPECT_THAT(OpenBlobStore(url), FailsWith(StatusCode::kInvalidArgument, "it must be file:DIR")) << url;
  }
}

}  // namespace
}  // namespace kvstore
