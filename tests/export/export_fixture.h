#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend_api/unit_key.h"
#include "base/big_endian.h"
#include "blobstore/open_blob_store.h"
#include "cli/line_reader.h"
#include "export/export.h"
#include "export/fetched_file.h"
#include "export/parquet_lines.h"
#include "export/parquet_program.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Helpers that tests of exports share.
namespace kvstore::testing {

/// Whether this build has the real kv-parquet; if not, tests that need it are skipped.
inline bool HasParquet() { return ::access(KV_PARQUET_PROGRAM, X_OK) == 0; }
#define SKIP_WITHOUT_PARQUET()           \
  if (!::kvstore::testing::HasParquet()) \
  GTEST_SKIP() << "kv-parquet is not built; ./dev parquet gets Arrow and builds it"

inline Unit RowUnitOf(const std::string& row, const std::string& column, std::vector<Cell> cells) {
  return {RowUnitKey(row, column), std::move(cells)};
}
inline Unit ObjectUnitOf(uint64_t id, uint64_t timestamp, const std::string& data) {
  return {ObjectUnitKey(id), {{timestamp, data}}};
}
inline Unit MappingUnitOf(uint64_t from, uint64_t to, uint64_t sequence) {
  std::string value;
  AppendBigEndian(value, sequence);
  return {MappingUnitKey(from, to), {{0, value}}};
}

/// A dataset that is in memory: its parts, each of some pages of units.
class FakeSource : public exports::ExportSource {
 public:
  using Page = std::vector<Unit>;

  explicit FakeSource(std::vector<std::vector<Page>> parts) : parts_(std::move(parts)) {}
  /// One part with one page.
  static FakeSource Of(Page units) { return FakeSource({{std::move(units)}}); }

  uint64_t as_of_ms() const override { return 1'700'000'000'000; }
  bool is_snapshot() const override { return true; }
  size_t parts() const override { return parts_.size(); }
  absl::StatusOr<std::unique_ptr<UnitScan>> Open(size_t part) override {
    return std::make_unique<Scan>(parts_[part]);
  }

 private:
  class Scan : public UnitScan {
   public:
    explicit Scan(const std::vector<Page>& pages) : pages_(pages) {}
    absl::StatusOr<std::vector<Unit>> Next() override {
      return at_ < pages_.size() ? pages_[at_++] : std::vector<Unit>();
    }

   private:
    const std::vector<Page>& pages_;
    size_t at_ = 0;
  };

  const std::vector<std::vector<Page>> parts_;
};

/// A folder for exports.
class ExportTest : public ::testing::Test {
 protected:
  ExportTest() {
    ::setenv("KV_PARQUET", KV_PARQUET_PROGRAM, 1);
    blobs_ = *OpenBlobStore("file:" + (dir_ / "exports").string());
  }
  ~ExportTest() override { ::unsetenv("KV_PARQUET"); }

  static exports::ExportRequest Request(Shape shape, exports::TableOptions options = {}) {
    return {.dataset = "data", .shape = shape, .options = std::move(options)};
  }
  static exports::ExportOptions Options(const std::string& token = "", size_t lanes = 2) {
    return {.program = KV_PARQUET_PROGRAM, .token = token, .lanes = lanes};
  }
  absl::StatusOr<exports::Manifest> Export(exports::ExportSource& source, Shape shape,
                                           exports::TableOptions options = {}) {
    return exports::ExportDataset(source, Request(shape, std::move(options)), *blobs_, Options());
  }

  /// Reads all of a descriptor, line by line.
  static std::vector<std::string> ReadLines(int file) {
    cli::LineReader reader(file, size_t{64} << 20, [] { return absl::OkStatus(); });
    std::vector<std::string> lines;
    for (std::string line; *reader.Next(line) == cli::LineReader::Result::kLine;) lines.push_back(line);
    return lines;
  }
  /// The lines of all files of an export, in order.
  ///
  /// arguments  of `kv-parquet lines`.
  std::vector<std::string> Lines(const exports::Manifest& manifest,
                                 const std::vector<std::string>& arguments) {
    std::vector<std::string> all;
    for (const exports::ExportedFile& file : manifest.files) {
      const auto fetched = exports::FetchFile(*blobs_, manifest.id + "/" + file.path,
                                              {.size = file.size, .checksum = file.checksum});
      EXPECT_OK(fetched);
      if (!fetched.ok()) continue;
      const auto lines = exports::ParquetLines::Open(fetched->get(), arguments);
      EXPECT_OK(lines);
      if (!lines.ok()) continue;
      for (std::string& line : ReadLines((*lines)->file())) all.push_back(std::move(line));
      EXPECT_OK((*lines)->Finish());
    }
    return all;
  }
  /// The names of all blobs that are there.
  std::set<std::string> Blobs() {
    std::set<std::string> names;
    const auto page = blobs_->List("", "", kMaxListed);
    EXPECT_OK(page);
    for (const BlobEntry& blob : page->blobs) names.insert(blob.name);
    return names;
  }
  /// The names of the blobs of an export.
  static std::set<std::string> BlobsOf(const exports::Manifest& manifest) {
    std::set<std::string> names = {exports::ManifestBlob(manifest.id)};
    for (const exports::ExportedFile& file : manifest.files) names.insert(manifest.id + "/" + file.path);
    return names;
  }
  /// Writes a program of a test's own, in place of kv-parquet, and returns its path.
  std::string Script(const std::string& text) {
    const std::filesystem::path path = dir_ / "kv-parquet";
    std::ofstream(path) << "#!/bin/bash\n" << text << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    ::setenv("KV_PARQUET", path.c_str(), 1);
    return path.string();
  }

  const TempDir dir_;
  std::unique_ptr<BlobStore> blobs_;
};

}  // namespace kvstore::testing
