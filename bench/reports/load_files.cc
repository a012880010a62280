#include "bench/reports/load_files.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/command.h"
#include "cli/rejected_lines.h"
#include "cli/reports/load_file.h"

namespace kvstore::bench {

absl::StatusOr<LoadTime> LoadFromFile(reports::Reports& reports, const PointSet& set,
                                      const std::filesystem::path& file) {
  if (auto status = reports.Create(set.info()); !status.ok()) return status;
  const auto format = cli::FormatOf(file.string(), "");
  if (!format.ok()) return format.status();
  const cli::LoadOptions options{.report = set.report};
  cli::RejectedLines rejected("");
  try {
    const auto begin = std::chrono::steady_clock::now();
    cli::BatchWriter writer(reports, /*add=*/false, /*in_flight=*/1);
    const cli::LoadCounts counts =
        cli::LoadFile(reports, options, {.path = file.string(), .format = *format}, writer, rejected);
    if (auto status = writer.Finish(); !status.ok()) return status;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (counts.points != set.points() || counts.rejected > 0) {
      return absl::DataLossError(fmt::format("of the {} points of {}, {} were loaded and {} lines rejected",
                                             set.points(), file.string(), counts.points, counts.rejected));
    }
    return LoadTime{.points = counts.points, .seconds = taken.count()};
  } catch (const cli::Failure& failure) {
    return failure.status;
  }
}

}  // namespace kvstore::bench
