#include "server/http/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "promql/evaluate.h"
#include "promql/parse.h"
#include "reports/json_operations.h"
#include "reports/steps.h"
#include "server/call/access.h"

namespace kvstore::server {
namespace {

using JsonAnswer = absl::StatusOr<Json>;

/// The version in the build information. Prometheus of this version has everything that is answered here, so
/// that tools ask for it.
constexpr std::string_view kPrometheusVersion = "2.40.0";
/// Names beyond this are left out, and the answer says so.
constexpr size_t kMostNames = 10'000;
constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kMaxTimeMs = 253'402'300'799'000;  // the end of 9999

/// Returns the value of a parameter; the last one, if it is given several times. Empty: there is none.
std::string Find(const Parameters& parameters, std::string_view name) {
  std::string found;
  for (const auto& [one, value] : parameters) {
    if (one == name) found = value;
  }
  return found;
}

absl::Status Wrong(std::string_view name, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", name, problem));
}

/// Returns the number that a text is; nothing if it is none.
std::optional<double> NumberIn(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

/// Reads a time: seconds since 1970, perhaps with a fraction, or RFC 3339.
absl::StatusOr<int64_t> ReadTime(std::string_view name, const std::string& text) {
  if (const auto seconds = NumberIn(text)) {
    const double ms = std::round(*seconds * 1'000);
    if (ms >= 0 && ms <= static_cast<double>(kMaxTimeMs)) return static_cast<int64_t>(ms);
    return Wrong(name, "must be from 1970 to 9999");
  }
  const auto time = reports::ParseTimeText(text, absl::UTCTimeZone());
  if (!time.ok()) return Wrong(name, "must be seconds since 1970, or a time as 2026-01-31T05:00:00Z");
  return *time;
}

/// Reads a stretch of time: seconds, perhaps with a fraction, or as in PromQL.
absl::StatusOr<int64_t> ReadStep(const std::string& text) {
  if (const auto seconds = NumberIn(text)) {
    if (*seconds > 0 && *seconds < 1e10) return static_cast<int64_t>(std::round(*seconds * 1'000));
    return Wrong("step", "must be more than 0 seconds, and less than 10,000,000,000");
  }
  const auto ms = promql::ParseDurationMs(text);
  if (!ms.ok()) return Wrong("step", std::string(ms.status().message()));
  return *ms;
}

/// Adds times to a request; those that are not given are `otherwise`, or missing.
absl::Status AddTime(const Parameters& parameters, std::string_view name, std::optional<int64_t> otherwise,
                     Json& request) {
  const std::string text = Find(parameters, name);
  if (text.empty() && !otherwise) return Wrong(name, "is missing");
  auto time = text.empty() ? absl::StatusOr<int64_t>(*otherwise) : ReadTime(name, text);
  if (!time.ok()) return time.status();
  request[std::string(name)] = *time;
  return absl::OkStatus();
}

int64_t Now() { return absl::ToUnixMillis(absl::Now()); }

/// Returns a request with the report, of which the caller needs a right, and the dataset that has it.
Json RequestFor(const Parameters& parameters, const std::string& report) {
  Json request = Json::object();
  if (!report.empty()) request["report"] = report;
  if (std::string dataset = Find(parameters, "dataset"); !dataset.empty())
    request["dataset"] = std::move(dataset);
  return request;
}

JsonAnswer ReadQuery(const Parameters& parameters, bool range) {
  std::string text = Find(parameters, "query");
  if (const auto sum = promql::ParseSum(text); sum && !range) {
    Json request = RequestFor(parameters, "");
    request["sum"] = *sum;
    if (auto status = AddTime(parameters, "time", Now(), request); !status.ok()) return status;
    return request;
  }
  const auto expression = promql::Parse(text);
  if (!expression.ok()) return expression.status();
  Json request = RequestFor(parameters, expression->selector.report);
  request["query"] = std::move(text);
  absl::Status status;
  if (range) {
    status = AddTime(parameters, "start", std::nullopt, request);
    if (status.ok()) status = AddTime(parameters, "end", std::nullopt, request);
    if (!status.ok()) return status;
    const auto step = ReadStep(Find(parameters, "step"));
    if (!step.ok()) return step.status();
    request["step"] = *step;
  } else if (status = AddTime(parameters, "time", Now(), request); !status.ok()) {
    return status;
  }
  return request;
}

/// Reads a request about names or values, which may be about one series: match[].
JsonAnswer ReadMatch(const Parameters& parameters) {
  const std::string match = Find(parameters, "match[]");
  const auto matches = std::count_if(parameters.begin(), parameters.end(),
                                     [](const auto& parameter) { return parameter.first == "match[]"; });
  if (matches > 1) return Wrong("match[]", "is given several times; ask for one series at a time");
  std::string report;
  if (!match.empty()) {
    const auto selector = promql::ParseSelector(match);
    if (!selector.ok()) return selector.status();
    report = selector->report;
  }
  Json request = RequestFor(parameters, report);
  if (!match.empty()) request["match"] = match;
  for (const auto& [name, otherwise] : {std::pair("start", Now() - kHourMs), std::pair("end", Now())}) {
    if (auto status = AddTime(parameters, name, otherwise, request); !status.ok()) return status;
  }
  if (std::string label = Find(parameters, "label"); !label.empty()) request["label"] = std::move(label);
  return request;
}

std::optional<std::string> ReportIn(const Json& request) {
  if (!request.contains("report")) return std::nullopt;
  return request["report"].get<std::string>();
}

/// The dataset that has the reports.
std::string DatasetIn(const Json& request) {
  return request.value("dataset", std::string(reports::kDefaultDataset));
}

std::unique_ptr<reports::Reports> ReportsFor(const ServedRequest& served) {
  return served.reports_of(DatasetIn(served.request));
}

JsonAnswer ServeQuery(const ServedRequest& served) {
  const Json& request = served.request;
  if (request.contains("sum")) {
    return Json{{"resultType", "scalar"},
                {"result", Json::array({request["time"].get<double>() / 1'000,
                                        promql::ValueText(reports::Number::Real(request["sum"]))})}};
  }
  const auto expression = promql::Parse(request["query"].get<std::string>());
  if (!expression.ok()) return expression.status();
  promql::Times times;
  if (request.contains("step")) {
    times = {
        .start_ms = request["start"], .end_ms = request["end"], .step_ms = request["step"].get<int64_t>()};
  } else {
    times.end_ms = request["time"];
  }
  return promql::Evaluate(*ReportsFor(served), *expression, times);
}

JsonAnswer ServeSeries(const ServedRequest& served) {
  if (!served.request.contains("match")) return Wrong("match[]", "is missing");
  const auto selector = promql::ParseSelector(served.request["match"].get<std::string>());
  if (!selector.ok()) return selector.status();
  return promql::SeriesOf(
      *ReportsFor(served), *selector,
      {.start_ms = served.request["start"], .end_ms = served.request["end"], .step_ms = std::nullopt});
}

/// Looks whether there is the series that is named. The call itself needs no right, since it lists what its
/// caller may read.
absl::Status CheckMatch(const ServedRequest& served) {
  const auto report = ReportIn(served.request);
  if (!report) return absl::OkStatus();
  auto status = CheckRight(served.principal, DatasetIn(served.request), Right::kRead, *report);
  if (!status.ok()) return status;
  const auto selector = promql::ParseSelector(served.request["match"].get<std::string>());
  if (!selector.ok()) return selector.status();
  return promql::CheckSeries(*ReportsFor(served), *selector);
}

JsonAnswer ServeLabels(const ServedRequest& served) {
  if (auto status = CheckMatch(served); !status.ok()) return status;
  return promql::LabelNames(*ReportsFor(served), ReportIn(served.request));
}

/// Returns the values as "data", with "warnings" if not all of them are there.
JsonAnswer ServeLabelValues(const ServedRequest& served) {
  if (auto status = CheckMatch(served); !status.ok()) return status;
  const std::string label = served.request.value("label", "");
  const auto reports = ReportsFor(served);
  const bool names = label == "__name__";
  // One name more than are returned says whether some are left out.
  auto values = names ? promql::SeriesNames(*reports, ReportIn(served.request), kMostNames + 1)
                      : promql::LabelValues(*reports, ReportIn(served.request), label);
  if (!values.ok()) return values;
  Json answer;
  if (names && values->size() > kMostNames) {
    values->erase(values->begin() + kMostNames, values->end());
    answer["warnings"] = Json::array(
        {fmt::format("there are more than {} names of series, and the others are left out; match[] asks for "
                     "those of one report",
                     kMostNames)});
  }
  answer["data"] = *std::move(values);
  return answer;
}

JsonAnswer ServeBuildInfo(const ServedRequest&) {
  return Json{{"version", kPrometheusVersion},
              {"revision", "kvstore " KV_VERSION},
              {"branch", ""},
              {"buildUser", ""},
              {"buildDate", ""},
              {"goVersion", ""}};
}

/// The kinds of errors that Prometheus has.
std::string_view ErrorType(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return "bad_data";
    case absl::StatusCode::kNotFound:
      return "not_found";
    case absl::StatusCode::kDeadlineExceeded:
      return "timeout";
    case absl::StatusCode::kCancelled:
      return "canceled";
    case absl::StatusCode::kUnavailable:
      return "unavailable";
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
      return "internal";
    default:
      return "execution";
  }
}

Json Wrap(const JsonAnswer& answer) {
  if (answer.ok()) return {{"status", "success"}, {"data", *answer}};
  return {{"status", "error"},
          {"errorType", ErrorType(answer.status())},
          {"error", std::string(answer.status().message())}};
}

/// Wraps what ServeLabelValues returns.
Json WrapLabelValues(const JsonAnswer& answer) {
  if (!answer.ok()) return Wrap(answer);
  Json whole = *answer;
  whole["status"] = "success";
  return whole;
}

/// The form of a request, which says that it may name a dataset.
JsonForm FormOf(std::string_view summary) {
  return {.summary = summary, .request = {OptionalField("dataset", "Text")}, .takes_more_fields = true};
}

}  // namespace

const JsonOperations& PrometheusOperations() {
  static const JsonOperations kAll = [] {
    JsonOperations all;
    const auto add = [&all](std::string_view name, Operation operation, std::string_view summary, auto read,
                            auto serve) {
      all[std::string(name)] = {.name = std::string(name),
                                .operation = operation,
                                .form = FormOf(summary),
                                .serve = serve,
                                .read = read,
                                .wrap = &Wrap};
    };
    const auto range = [](const Parameters& parameters) { return ReadQuery(parameters, /*range=*/true); };
    const auto instant = [](const Parameters& parameters) { return ReadQuery(parameters, /*range=*/false); };
    const auto nothing = [](const Parameters&) { return JsonAnswer(Json::object()); };
    add("query_range", Operation::kQueryReport, "Evaluates a query at many times", range, &ServeQuery);
    add("query", Operation::kQueryReport, "Evaluates a query once", instant, &ServeQuery);
    add("series", Operation::kQueryReport, "Returns the series that match", &ReadMatch, &ServeSeries);
    // The answers of these tell only of reports that the caller may read.
    add("labels", Operation::kListReports, "Returns the segment keys", &ReadMatch, &ServeLabels);
    add(kLabelValues, Operation::kListReports, "Returns the values of a key", &ReadMatch, &ServeLabelValues);
    all.at(std::string(kLabelValues)).wrap = &WrapLabelValues;
    add("metadata", Operation::kListReports, "Returns nothing: reports have no descriptions", nothing,
        [](const ServedRequest&) { return JsonAnswer(Json::object()); });
    add("status/buildinfo", Operation::kListReports, "Returns the version of Prometheus that this is like",
        nothing, &ServeBuildInfo);
    return all;
  }();
  return kAll;
}

}  // namespace kvstore::server
