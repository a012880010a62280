#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "backup/create.h"
#include "backup/list.h"
#include "backup/restore.h"
#include "base/fail_point.h"
#include "base/shift_clock.h"
#include "blobstore/open_blob_store.h"
#include "catalog/catalog_json.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Helpers that tests of backups share, among them a store that is nothing but files, so that no engine is
/// needed.
namespace kvstore::testing {

/// The text of a file; empty if there is none.
inline std::string TextOfFile(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The texts of all files below a folder, by their paths in it.
inline std::map<std::string, std::string> FilesIn(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(folder).string()] = TextOfFile(entry.path());
  }
  return files;
}

/// The files of a store, of which checkpoints are made.
class FakeStore {
 public:
  FakeStore() {
    files_ = {{"KVSTORE", "kvstore format 1\n"},
              {"catalog.json", EncodeCatalog({})},
              {"rocksdb/CURRENT", "MANIFEST-000005\n"},
              {"rocksdb/MANIFEST-000005", "the tables are 10 and 11"},
              {"rocksdb/000012.log", "some writes"}};
    PutTable(10, std::string(1000, 'a'));
    PutTable(11, std::string(2000, 'b'));
  }

  const std::map<std::string, std::string>& files() const { return files_; }
  void Put(const std::string& path, const std::string& text) { files_[path] = text; }
  /// A table, whose unique ID is its number.
  void PutTable(int number, const std::string& text) {
    const std::string path = fmt::format("rocksdb/{:06}.sst", number);
    files_[path] = text;
    unique_ids_[path] = UniqueId(number);
  }
  void RemoveTable(int number) { files_.erase(fmt::format("rocksdb/{:06}.sst", number)); }
  static std::string UniqueId(int number) { return fmt::format("{:048x}", number); }

  /// Makes checkpoints in a folder of the test.
  backup::CheckpointMaker CheckpointsIn(const std::filesystem::path& folder) const {
    return [this, folder]() -> absl::StatusOr<std::unique_ptr<Checkpoint>> {
      static std::atomic<int> number{0};
      const auto own = folder / fmt::format("checkpoint-{}", ++number);
      std::vector<CheckpointFile> files;
      for (const auto& [path, text] : files_) {
        std::filesystem::create_directories((own / path).parent_path());
        std::ofstream(own / path, std::ios::binary) << text;
        const auto id = unique_ids_.find(path);
        files.push_back({path, text.size(), id == unique_ids_.end() ? "" : id->second});
      }
      return std::make_unique<Checkpoint>(own, std::move(files), "fake 1", 42);
    };
  }

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, std::string> unique_ids_;
};

/// A fake store, and a folder for its backups.
class BackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenBlobStore("file:" + (dir_ / "blobs").string());
    ASSERT_OK(opened);
    blobs_ = *std::move(opened);
  }
  void TearDown() override {
    ShiftWallClock(0);
    SetFailPointHook(nullptr);
  }

  absl::StatusOr<backup::Manifest> Create(BlobStore& blobs) {
    return backup::CreateBackup(store_.CheckpointsIn(dir_.path()), blobs);
  }
  backup::Manifest MustCreate() {
    auto made = Create(*blobs_);
    EXPECT_OK(made);
    return made.ok() ? *std::move(made) : backup::Manifest();
  }
  /// Restores a backup into a new folder and returns its files.
  std::map<std::string, std::string> Restored(const backup::Manifest& manifest) {
    const auto folder = dir_ / fmt::format("restored-{}", ++restores_);
    EXPECT_OK(backup::RestoreBackup(manifest, *blobs_, folder));
    return FilesIn(folder);
  }
  std::vector<std::string> Live() {
    auto list = backup::ListBackups(*blobs_);
    EXPECT_OK(list);
    return list.ok() ? list->live : std::vector<std::string>();
  }
  size_t CountObjects() {
    auto objects = backup::ListAll(*blobs_, "objects/");
    EXPECT_OK(objects);
    return objects.ok() ? objects->size() : 0;
  }
  std::filesystem::path PathOf(const std::string& blob) const { return dir_ / "blobs" / blob; }

  const TempDir dir_;
  FakeStore store_;
  std::unique_ptr<BlobStore> blobs_;
  int restores_ = 0;
};

}  // namespace kvstore::testing
