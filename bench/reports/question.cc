#include "bench/reports/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

namespace kvstore::bench {
namespace {

/// The sum of each group and day, by "country/app/gender/time in ms" without the keys that are not asked for.
using Sums = std::map<std::string, int64_t>;

std::vector<std::string> Countries(const PointSet& set, const Question& question) {
  std::vector<std::string> names = PointNames(set).countries;
  names.resize(std::min<size_t>(names.size(), question.countries));
  return names;
}

/// The sums of the points as they are made.
Sums SumsOf(const PointSet& set, const Question& question) {
  const PointNames names(set);
  const auto by = [&](std::string_view key) {
    return std::find(question.group_by.begin(), question.group_by.end(), key) != question.group_by.end();
  };
  const bool by_country = by("country");
  const bool by_app = by("app");
  const bool by_gender = by("gender");
  std::map<std::string, std::vector<int64_t>> days;  // of each group, for each day that is asked for
  for (uint32_t series = 0; series < set.series(); ++series) {
    if (set.country(series) >= question.countries) continue;
    std::string group;
    if (by_country) group += names.countries[set.country(series)] + '/';
    if (by_app) group += names.apps[set.app(series)] + '/';
    if (by_gender) group += names.genders[set.gender(series)] + '/';
    auto& of_group = days[group];
    of_group.resize(question.end_day - question.first_day);
    for (size_t day = 0; day < of_group.size(); ++day) {
      of_group[day] += ValueOf(set, question.metric, series, question.first_day + static_cast<uint32_t>(day));
    }
  }
  Sums sums;
  for (const auto& [group, values] : days) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto day = question.first_day + (question.daily ? static_cast<int64_t>(i) : 0);
      sums[fmt::format("{}{}", group, kFirstDayMs + day * kDayMs)] += values[i];
    }
  }
  return sums;
}

Sums SumsOf(const reports::QueryResult& result) {
  Sums sums;
  for (const reports::ResultSeries& series : result.series) {
    std::string group;
    for (const auto& [key, value] : series.segments) group += value + '/';
    for (const auto& [time, number] : series.points)
      sums[fmt::format("{}{}", group, time)] += number.integer();
  }
  return sums;
}

/// The sums in rows of DuckDB: the segments, the time, the sum.
Sums SumsOf(const Json& rows) {
  Sums sums;
  for (const Json& row : rows) {
    std::string group;
    for (size_t i = 0; i + 2 < row.size(); ++i) group += row[i].get<std::string>() + '/';
    sums[fmt::format("{}{}", group, row[row.size() - 2].get<int64_t>())] += row.back().get<int64_t>();
  }
  return sums;
}

absl::Status CheckEqual(std::string_view who, const Sums& sums, const Sums& expected) {
  if (sums == expected) return absl::OkStatus();
  const auto text = [](const Sums& all, const std::string& place) {
    const auto found = all.find(place);
    return found == all.end() ? std::string("nothing") : std::to_string(found->second);
  };
  for (const Sums* const one : {&expected, &sums}) {
    for (const auto& [place, sum] : *one) {
      if (text(sums, place) == text(expected, place)) continue;
      return absl::DataLossError(fmt::format("{} answers {} for {}; the points' sum is {}", who,
                                             text(sums, place), place, text(expected, place)));
    }
  }
  return absl::OkStatus();
}

Json ToJson(const PointSet& set, const Question& question) {
  Json request = {{"op", "query"},
                  {"table", set.report},
                  {"metric", PointNames(set).metrics[question.metric]},
                  {"from", PointNames(set).days[question.first_day]},
                  {"days", question.end_day - question.first_day},
                  {"daily", question.daily},
                  {"group_by", question.group_by}};
  if (question.countries != UINT32_MAX) request["countries"] = Countries(set, question);
  return request;
}

/// One question, as each side is asked it.
struct Prepared {
  reports::Query query;
  Json request;
};

uint64_t Nanoseconds(double ms) { return static_cast<uint64_t>(ms * 1e6); }

}  // namespace

reports::Query ToQuery(const PointSet& set, const Question& question, size_t threads) {
  reports::Query query{.report = set.report,
                       .metrics = {{.name = PointNames(set).metrics[question.metric]}},
                       .from = kFirstDayMs + question.first_day * kDayMs,
                       .to = kFirstDayMs + question.end_day * kDayMs,
                       .group_by = question.group_by};
  if (question.daily) query.step = *reports::ParseStep("1d");
  if (question.countries != UINT32_MAX) {
    query.filters.push_back({.name = "", .where = {{"country", Countries(set, question)}}});
  }
  query.limits.threads = threads;
  return query;
}

absl::StatusOr<Turns> AskByTurns(reports::Reports& reports, DuckDb* duckdb, const PointSet& set,
                                 std::span<const Question> questions, int rounds, size_t threads) {
  std::vector<Prepared> prepared;
  for (const Question& question : questions) {
    prepared.push_back({ToQuery(set, question, threads), ToJson(set, question)});
    const Prepared& one = prepared.back();
    const Sums expected = SumsOf(set, question);
    const auto ours = reports.Run(one.query);
    if (!ours.ok()) return ours.status();
    if (auto status = CheckEqual("our store", SumsOf(*ours), expected); !status.ok()) return status;
    if (duckdb == nullptr) continue;
    const auto theirs = duckdb->Ask(one.request);
    if (!theirs.ok()) return theirs.status();
    if (auto status = CheckEqual("DuckDB", SumsOf((*theirs)["rows"]), expected); !status.ok()) return status;
  }
  Turns turns;
  const auto ask_ours = [&](const Prepared& one) -> absl::Status {
    const auto begin = std::chrono::steady_clock::now();
    const auto result = reports.Run(one.query);
    if (!result.ok()) return result.status();
    const auto taken = std::chrono::steady_clock::now() - begin;
    turns.ours.Add(static_cast<uint64_t>(std::chrono::nanoseconds(taken).count()));
    turns.cost = result->cost;
    return absl::OkStatus();
  };
  const auto ask_duckdb = [&](const Prepared& one) -> absl::Status {
    if (duckdb == nullptr) return absl::OkStatus();
    const auto answer = duckdb->Ask(one.request);
    if (!answer.ok()) return answer.status();
    turns.duckdb.Add(Nanoseconds((*answer)["ms"].get<double>()));
    return absl::OkStatus();
  };
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::function<absl::Status(const Prepared&)>> sides = {ask_ours, ask_duckdb};
    if (round % 2 == 1) std::swap(sides[0], sides[1]);
    for (const Prepared& one : prepared) {
      for (const auto& ask : sides) {
        if (auto status = ask(one); !status.ok()) return status;
      }
    }
  }
  return turns;
}

}  // namespace kvstore::bench
