#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/input_file.h"
#include "cli/reports/batch_writer.h"
#include "cli/reports/load_target.h"
#include "tests/cli/reports/recording_reports.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Loads files into RecordingReports by one of the loaders.
class LoadFixture : public ::testing::Test {
 protected:
  using Loader = std::function<void(reports::Reports&, const cli::LoadOptions&, int file, cli::LoadTarget&,
                                    const std::function<void(uint64_t)>& progress)>;
  /// A line that was rejected: "NUMBER: REASON".
  using Rejects = std::vector<std::string>;

  /// Loads a file with this text. Throws cli::Failure.
  cli::LoadCounts Load(const Loader& loader, const std::string& text) {
    std::ofstream(dir_ / "in", std::ios::binary) << text;
    const cli::InputFile input((dir_ / "in").string());
    cli::RejectedLines rejected_lines("");
    cli::BatchWriter writer(reports_, options_.add, 1);
    cli::LoadTarget target(options_, "in", prefix_, writer, rejected_lines);
    loader(reports_, options_, input.file(), target, [](uint64_t) {});
    cli::OrFail(writer.Finish());
    rejects_.clear();
    for (const auto& line : rejected_lines.First()) {
      rejects_.push_back(std::to_string(line["line"].get<int>()) + ": " + line["error"].get<std::string>());
    }
    return target.counts();
  }

  /// Why loading a file with this text fails; OK if it does not.
  absl::Status FailureOf(const Loader& loader, const std::string& text) {
    try {
      Load(loader, text);
    } catch (const cli::Failure& failure) {
      return failure.status;
    }
    return absl::OkStatus();
  }

  const TempDir dir_;
  RecordingReports reports_{SiteReport()};
  cli::LoadOptions options_{.report = "site"};
  std::string prefix_;
  Rejects rejects_;
};

}  // namespace kvstore::testing
