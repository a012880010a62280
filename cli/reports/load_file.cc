#include "cli/reports/load_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "cli/command.h"
#include "cli/input_file.h"
#include "cli/progress.h"
#include "cli/reports/csv_points.h"
#include "cli/reports/json_points.h"
#include "export/parquet_lines.h"

namespace kvstore::cli {
namespace {

constexpr std::array<std::pair<std::string_view, FileFormat>, 5> kExtensions = {
    {{".csv", FileFormat::kCsv},
     {".jsonl", FileFormat::kJsonLines},
     {".ndjson", FileFormat::kJsonLines},
     {".json", FileFormat::kJsonLines},
     {".parquet", FileFormat::kParquet}}};

std::string PrefixOf(const FileToLoad& file, const InputFile& input, bool add) {
  if (!file.batch.empty() || !add) return file.batch;
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(file.path, error);
  return fmt::format("file-{:016x}", Fnv1a(fmt::format("{} {} {}", error ? file.path : path.string(),
                                                       input.size(), input.written_ns())));
}

/// Reads a Parquet file as lines, in which the values of segment keys are strings. Throws Failure.
void LoadParquet(reports::Reports& reports, const LoadOptions& options, int file, LoadTarget& target,
                 const std::function<void(uint64_t)>& progress) {
  std::vector<std::string> arguments = {"points"};
  for (const reports::SegmentKey& key : OrFail(reports.Info(options.report, {})).keys) {
    arguments.insert(arguments.end(), {"--text", key.name});
  }
  for (const std::string& column : options.ignored) {
    arguments.insert(arguments.end(), {"--without", column});
  }
  const auto lines = OrFail(exports::ParquetLines::Open(file, arguments));
  LoadJsonLines(reports, options, lines->file(), target, progress);
  // Without this, a file that is damaged in its middle would seem to end there.
  OrFail(lines->Finish());
}

}  // namespace

absl::StatusOr<FileFormat> FormatOf(const std::string& path, const std::string& named) {
  if (named == "csv") return FileFormat::kCsv;
  if (named == "jsonl") return FileFormat::kJsonLines;
  if (path == "-") {
    return absl::InvalidArgumentError(
        named == "parquet"
            ? "parquet is not read from standard input, which cannot be read from its end; name the file"
            : "standard input has no name that would say its format: give csv or jsonl");
  }
  if (named == "parquet") return FileFormat::kParquet;
  const auto* const known = std::find_if(kExtensions.begin(), kExtensions.end(), [&](const auto& extension) {
    return path.ends_with(extension.first);
  });
  if (known != kExtensions.end()) return known->second;
  if (path.ends_with(".gz") || path.ends_with(".zst") || path.ends_with(".xz") || path.ends_with(".bz2")) {
    return absl::InvalidArgumentError(
        fmt::format("{}: this version does not decompress; do it in a pipe: zcat FILE | kv report load NAME "
                    "- --format csv",
                    path));
  }
  return absl::InvalidArgumentError(
      fmt::format("{}: the name does not say the format (.csv, .jsonl, .ndjson, .json, .parquet): give csv, "
                  "jsonl or parquet",
                  path));
}

LoadCounts LoadFile(reports::Reports& reports, const LoadOptions& options, const FileToLoad& file,
                    BatchWriter& writer, RejectedLines& rejected_lines) {
  const InputFile input(file.path);
  const std::string name = file.path == "-" ? "standard input" : file.path;
  LoadTarget target(options, name, PrefixOf(file, input, options.add), writer, rejected_lines);
  ProgressBar bar("load " + name, "bytes");
  const auto begun = std::chrono::steady_clock::now();
  // The lines that are made of Parquet are larger than the file.
  const uint64_t size = file.format == FileFormat::kParquet ? 0 : input.size();
  const auto progress = [&](uint64_t bytes) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    const LoadCounts& counts = target.counts();
    bar.Show(bytes, size,
             fmt::format("{} lines, {:.0f} points a second, {} rejected", counts.lines,
                         static_cast<double>(counts.points) / std::max(seconds, 0.001), counts.rejected));
  };
  switch (file.format) {
    case FileFormat::kCsv:
      LoadCsv(reports, options, input.file(), target, progress);
      break;
    case FileFormat::kJsonLines:
      LoadJsonLines(reports, options, input.file(), target, progress);
      break;
    case FileFormat::kParquet:
      LoadParquet(reports, options, input.file(), target, progress);
      break;
  }
  return target.counts();
}

}  // namespace kvstore::cli
