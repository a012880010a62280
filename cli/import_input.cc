#include "cli/import_input.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "cli/export_place.h"
#include "cli/input_file.h"
#include "export/fetched_file.h"
#include "export/manifest.h"
#include "export/parquet_lines.h"

namespace kvstore::cli {
namespace {

LineReader NewReader(int file) {
  return LineReader(file, kMaxImportLineBytes, [] { return absl::OkStatus(); });
}

class JsonLinesInput : public ImportInput {
 public:
  explicit JsonLinesInput(const std::string& path)
      : name_(path == "-" ? "standard input" : path), file_(path), reader_(NewReader(file_.file())) {}

  absl::StatusOr<LineReader::Result> Next(std::string& line) override {
    auto result = reader_.Next(line);
    if (result.ok()) return result;
    return absl::Status(result.status().code(),
                        fmt::format("{}: {}", name_, std::string(result.status().message())));
  }
  uint64_t offset() const override { return start_ + reader_.consumed(); }
  uint64_t size() const override { return file_.size(); }
  void Skip(uint64_t bytes) override {
    start_ = bytes;
    file_.Skip(bytes);
  }

 private:
  const std::string name_;
  const InputFile file_;
  LineReader reader_;
  uint64_t start_ = 0;
};

/// The lines of one Parquet file.
class FileLines {
 public:
  /// file  may be closed once this is made.
  FileLines(int file, const std::vector<std::string>& arguments)
      : lines_(OrFail(exports::ParquetLines::Open(file, arguments))), reader_(NewReader(lines_->file())) {}

  /// As LineReader::Next. At the end it is certain that the file was read to its end.
  absl::StatusOr<LineReader::Result> Next(std::string& line) {
    auto result = reader_.Next(line);
    if (!result.ok() || *result != LineReader::Result::kEnd) return result;
    if (auto status = lines_->Finish(); !status.ok()) return status;
    return result;
  }

 private:
  const std::unique_ptr<exports::ParquetLines> lines_;
  LineReader reader_;
};

class ParquetFileInput : public ImportInput {
 public:
  ParquetFileInput(const std::string& path, const std::vector<std::string>& arguments)
      : lines_(InputFile(path).file(), arguments) {}

  absl::StatusOr<LineReader::Result> Next(std::string& line) override { return lines_.Next(line); }
  uint64_t offset() const override { return 0; }
  uint64_t size() const override { return 0; }
  void Skip(uint64_t) override {}

 private:
  FileLines lines_;
};

/// The files of an export, one after another.
class ExportInput : public ImportInput {
 public:
  ExportInput(std::unique_ptr<BlobStore> blobs, exports::Manifest manifest,
              std::vector<std::string> arguments)
      : blobs_(std::move(blobs)), manifest_(std::move(manifest)), arguments_(std::move(arguments)) {}

  absl::StatusOr<LineReader::Result> Next(std::string& line) override {
    for (;;) {
      if (!lines_ && next_ == manifest_.files.size()) return LineReader::Result::kEnd;
      if (!lines_) {
        if (auto status = OpenNext(); !status.ok()) return status;
      }
      auto result = lines_->Next(line);
      const std::string& path = manifest_.files[next_ - 1].path;
      if (!result.ok()) {
        return absl::Status(result.status().code(),
                            fmt::format("{}: {}", path, std::string(result.status().message())));
      }
      if (*result != LineReader::Result::kEnd) return result;
      lines_.reset();
      done_ += manifest_.files[next_ - 1].size;
    }
  }
  uint64_t offset() const override { return done_; }
  uint64_t size() const override { return manifest_.TotalBytes(); }
  void Skip(uint64_t) override {}

 private:
  absl::Status OpenNext() {
    const exports::ExportedFile& file = manifest_.files[next_];
    const std::string name = fmt::format("{}/{}", manifest_.id, file.path);
    auto fetched = exports::FetchFile(*blobs_, name, {.size = file.size, .checksum = file.checksum});
    if (absl::IsNotFound(fetched.status())) {
      return absl::DataLossError(fmt::format("{} is missing, which the manifest names", name));
    }
    if (!fetched.ok()) return fetched.status();
    ++next_;
    lines_.emplace(fetched->get(), arguments_);
    return absl::OkStatus();
  }

  const std::unique_ptr<BlobStore> blobs_;
  const exports::Manifest manifest_;
  const std::vector<std::string> arguments_;
  std::optional<FileLines> lines_;  // of the file before next_
  size_t next_ = 0;                 // the file that is read next
  uint64_t done_ = 0;               // bytes of the files that were read
};

}  // namespace

std::unique_ptr<ImportInput> OpenJsonLines(const std::string& path) {
  return std::make_unique<JsonLinesInput>(path);
}

std::unique_ptr<ImportInput> OpenParquet(const std::string& place, Shape shape, bool compares,
                                         const Globals& globals) {
  if (place == "-") {
    throw Failure{absl::InvalidArgumentError(
        "file: Parquet is not read from standard input, which cannot be read from its end; name the file")};
  }
  std::vector<std::string> arguments = {std::string(Name(shape))};
  const bool is_file = place.ends_with(".parquet") && !place.starts_with("s3://");
  if (is_file) return std::make_unique<ParquetFileInput>(place, arguments);
  const ExportPlace found = FindExportPlace(place);
  auto blobs = OpenExports(globals, found.place);
  exports::Manifest manifest = OrFail(exports::ReadManifest(*blobs, found.id));
  if (manifest.request.shape != shape) {
    throw Failure{absl::InvalidArgumentError(fmt::format("{} is an export of {}, and the dataset has {}",
                                                         place, Name(manifest.request.shape), Name(shape)))};
  }
  if (!manifest.request.since.empty()) {
    throw Failure{absl::FailedPreconditionError(
        fmt::format("{} is an export of what has changed since '{}', and only whole exports are imported",
                    place, manifest.request.since))};
  }
  if (shape == Shape::kRows && !compares) {
    arguments.insert(arguments.end(), {"--time", std::to_string(manifest.as_of_ms)});
  }
  return std::make_unique<ExportInput>(std::move(blobs), std::move(manifest), std::move(arguments));
}

}  // namespace kvstore::cli
