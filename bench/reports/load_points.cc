#include "bench/reports/load_points.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "json_api/execute.h"

namespace kvstore::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

absl::Status Fill(reports::Batch& batch, const PointSet& set, const PointNames& names,
                  const std::vector<MadePoint>& points) {
  for (const MadePoint& point : points) {
    const std::optional<std::string_view> segments[] = {names.countries[set.country(point.series)],
                                                        names.apps[set.app(point.series)],
                                                        names.genders[set.gender(point.series)]};
    auto added = batch.Add(point.metric, kFirstDayMs + point.day * kDayMs, segments,
                           reports::Number::Integer(point.value));
    if (!added.ok()) return added;
  }
  return absl::OkStatus();
}

/// A point of the JSON form.
void AppendJson(std::string& text, const PointSet& set, const PointNames& names, const MadePoint& point) {
  fmt::format_to(
      std::back_inserter(text),
      R"({{"metric":"{}","time":"{}","segments":{{"country":"{}","app":"{}","gender":"{}"}},"value":{}}})",
      names.metrics[point.metric], names.days[point.day], names.countries[set.country(point.series)],
      names.apps[set.app(point.series)], names.genders[set.gender(point.series)], point.value);
}

std::string RequestOf(const std::string& dataset, const PointSet& set, const PointNames& names,
                      const std::vector<MadePoint>& points) {
  std::string text =
      fmt::format(R"({{"op":"write_points","dataset":"{}","report":"{}","points":[)", dataset, set.report);
  for (const MadePoint& point : points) {
    AppendJson(text, set, names, point);
    text += ',';
  }
  text.pop_back();
  return text + "]}";
}

/// Writes a line for each point of a set, series by series.
absl::Status WriteLines(const PointSet& set, const std::filesystem::path& file, const std::string& heading,
                        const std::function<void(std::string& text, const MadePoint& point)>& append) {
  std::ofstream out(file);
  std::string text = heading;
  PointMaker maker(set, PointOrder::kBySeries);
  while (true) {
    const auto& points = maker.Next(kPointsOfBatch);
    if (points.empty()) break;
    for (const MadePoint& point : points) append(text, point);
    out << text;
    text.clear();
  }
  if (out.flush()) return absl::OkStatus();
  return absl::UnavailableError("cannot write " + file.string());
}

}  // namespace

absl::StatusOr<LoadTime> LoadPoints(reports::Reports& reports, const PointSet& set, PointOrder order) {
  if (auto status = reports.Create(set.info()); !status.ok()) return status;
  const PointNames names(set);
  const auto info = reports.Info(set.report, names.metrics);
  if (!info.ok()) return info.status();
  LoadTime time;
  PointMaker maker(set, order);
  while (true) {
    const auto& points = maker.Next(kPointsOfBatch);
    if (points.empty()) return time;
    const auto begin = Clock::now();
    reports::Batch batch(*info);
    if (auto status = Fill(batch, set, names, points); !status.ok()) return status;
    const auto written = reports.Write(batch, {});
    if (!written.ok()) return written.status();
    time.seconds += SecondsSince(begin);
    time.points += *written;
  }
}

absl::StatusOr<LoadTime> LoadJson(KVStore& store, const std::string& dataset, const PointSet& set) {
  if (auto status = reports::LocalReports(store, dataset)->Create(set.info()); !status.ok()) return status;
  const PointNames names(set);
  LoadTime time;
  PointMaker maker(set, PointOrder::kBySeries);
  while (true) {
    const auto& points = maker.Next(kPointsOfBatch);
    if (points.empty()) return time;
    const std::string request = RequestOf(dataset, set, names, points);
    const auto begin = Clock::now();
    const std::string answer = json_api::Execute(store, request);
    time.seconds += SecondsSince(begin);
    if (answer != fmt::format(R"({{"ok":true,"written":{}}})", points.size())) {
      return absl::InternalError("write_points answers " + answer);
    }
    time.points += points.size();
  }
}

absl::Status WriteCsv(const PointSet& set, const std::filesystem::path& file) {
  const PointNames names(set);
  return WriteLines(
      set, file, "metric,time,country,app,gender,value\n", [&](std::string& text, const MadePoint& point) {
        fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{}\n", names.metrics[point.metric],
                       names.days[point.day], names.countries[set.country(point.series)],
                       names.apps[set.app(point.series)], names.genders[set.gender(point.series)],
                       point.value);
      });
}

absl::Status WriteLoadFiles(const PointSet& set, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return absl::UnavailableError(fmt::format("cannot create {}: {}", folder.string(), error.message()));
  const PointNames names(set);
  const auto csv = [&](std::string& text, const MadePoint& point) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{}\n", names.days[point.day],
                   names.countries[set.country(point.series)], names.apps[set.app(point.series)],
                   names.genders[set.gender(point.series)], point.value);
  };
  const auto json = [&](std::string& text, const MadePoint& point) {
    AppendJson(text, set, names, point);
    text += '\n';
  };
  auto status = WriteLines(set, folder / "points.csv",
                           fmt::format("time,country,app,gender,{}\n", names.metrics[0]), csv);
  if (!status.ok()) return status;
  return WriteLines(set, folder / "points.jsonl", "", json);
}

}  // namespace kvstore::bench
