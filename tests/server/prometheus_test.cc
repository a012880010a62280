#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/reports.h"
#include "tests/server/http_fixture.h"
#include "tests/server/token_list.h"
#include "tests/support/temp_dir.h"

/// Prometheus' HTTP API over reports: the requests that Grafana makes, as pkg/promlib of its sources writes
/// them.
namespace kvstore {
namespace {

using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpHeaders;
using testing::HttpTest;
using testing::Json;

constexpr int64_t kBegin = 1'767'225'600'000;  // 2026-01-01
const HttpHeaders kForm = {{"Content-Type", "application/x-www-form-urlencoded"}};

class PrometheusTest : public HttpTest {
 protected:
  void Load() const {
    const auto reports = reports::LocalReports(served_->router(), "reports");
    for (const char* name : {"visits", "secret"}) {
      const reports::ReportInfo info{
          .name = name, .keys = {{"country", "?"}}, .metrics = {{.name = "views"}}};
      ASSERT_OK(reports->Create(info));
      reports::Batch batch(*reports->Info(name, {"views"}));
      const std::vector<std::optional<std::string_view>> germany = {"DE"};
      for (int64_t i = 0; i < 24; ++i)
        ASSERT_OK(batch.Add(0, kBegin + i * 3'600'000, germany, reports::Number::Integer(i)));
      ASSERT_OK(reports->Write(batch, {}).status());
    }
  }
  HttpAnswer Get(const std::string& target, const HttpHeaders& headers = {}) const {
    return HttpClient(port()).Get("/api/v1/" + target, headers);
  }
  Json Data(const HttpAnswer& answer) const {
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json().value("status", ""), "success") << answer.body;
    return answer.json()["data"];
  }
  void ExpectError(const HttpAnswer& answer, int status, const std::string& type,
                   const std::string& text) const {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(answer.json().value("status", ""), "error") << answer.body;
    EXPECT_EQ(answer.json().value("errorType", ""), type) << answer.body;
    EXPECT_NE(answer.json().value("error", "").find(text), std::string::npos) << answer.body;
  }
};

TEST_F(PrometheusTest, SaveAndTest) {
  Serve();
  Load();
  const HttpAnswer answer = HttpClient(port()).Ask("POST", "/api/v1/query", "query=1%2B1&time=4", kForm);
  EXPECT_EQ(Data(answer), Json::parse(R"({"resultType": "scalar", "result": [4.0, "2"]})"));
  EXPECT_EQ(Data(Get("status/buildinfo"))["version"], "2.40.0");
  EXPECT_EQ(Data(Get("metadata?limit=1")), Json::object());
}

TEST_F(PrometheusTest, APanel) {
  Serve();
  Load();
  const std::string body =
      "end=1767240000&query=sum+by+%28country%29+%28visits%3Aviews%5B1h%5D%29&start=1767229200&step=3600";
  const Json data = Data(HttpClient(port()).Ask("POST", "/api/v1/query_range", body, kForm));
  EXPECT_EQ(data, Json::parse(R"({"resultType": "matrix", "result": [{"metric": {"country": "DE"},
      "values": [[1767229200.0, "0"], [1767232800.0, "1"], [1767236400.0, "2"], [1767240000.0, "3"]]}]})"));
  EXPECT_EQ(Data(Get("query_range?" + body)), data);
  // Grafana's custom parameters stand in the address, whatever the method.
  EXPECT_EQ(Data(HttpClient(port()).Ask("POST", "/api/v1/query_range?dataset=reports", body, kForm)), data);
  ExpectError(HttpClient(port()).Ask("POST", "/api/v1/query_range?dataset=others", body, kForm), 404,
              "not_found", "visits");
  EXPECT_EQ(Data(Get("query_range?query=sum(visits:views)&start=2026-01-01T01:00:00Z&end=2026-01-01T02:00:00."
                     "000Z&step=1h"))["result"][0]["values"]
                .size(),
            2u);
  EXPECT_EQ(
      Data(Get(
          "query?query=sum(sum_over_time(visits:views%5B1d%5D))&time=1767312000"))["result"][0]["value"][1],
      "276");
}

TEST_F(PrometheusTest, TheQueryBuilder) {
  Serve();
  Load();
  EXPECT_EQ(Data(Get("labels?start=1767225600&end=1767312000")), Json::parse(R"(["__name__", "country"])"));
  // It asks for these by POST, too.
  EXPECT_EQ(Data(HttpClient(port()).Ask("POST", "/api/v1/labels", "start=1767225600&end=1767312000", kForm)),
            Json::parse(R"(["__name__", "country"])"));
  EXPECT_EQ(Data(HttpClient(port()).Ask("POST", "/api/v1/series",
                                        "match%5B%5D=visits%3Aviews&start=1767225600&end=1767312000", kForm))
                .size(),
            1u);
  EXPECT_EQ(Data(Get("labels?match%5B%5D=%7B__name__%3D%22visits%3Aviews%22%7D")),
            Json::parse(R"(["__name__", "country"])"));
  EXPECT_EQ(Data(Get("label/__name__/values?start=1767225600&end=1767312000")),
            Json::parse(R"(["secret:views", "visits:views"])"));
  EXPECT_EQ(Data(Get("label/country/values?match%5B%5D=visits%3Aviews")), Json::parse(R"(["?", "DE"])"));
  EXPECT_EQ(Data(Get("series?match%5B%5D=visits%3Aviews&start=1767225600&end=1767312000")),
            Json::parse(R"([{"__name__": "visits:views", "country": "DE"}])"));
  EXPECT_EQ(Data(Get("series?match%5B%5D=visits%3Aviews&start=1767225600&end=1767225600")).size(), 1u);
}

TEST_F(PrometheusTest, NamesThatAreLeftOutAreSpokenOf) {
  Serve();
  Load();
  EXPECT_FALSE(Get("label/__name__/values").json().contains("warnings"));
  reports::ReportInfo info{.name = "many", .keys = {{"country", "?"}}};
  for (int i = 0; i < 10'000; ++i) info.metrics.push_back({.name = "m" + std::to_string(i)});
  ASSERT_OK(reports::LocalReports(served_->router(), "reports")->Create(info));
  const HttpAnswer all = Get("label/__name__/values?match%5B%5D=many:m1");
  EXPECT_EQ(Data(all).size(), 10'000u);
  EXPECT_FALSE(all.json().contains("warnings")) << "this is just the limit";
  const HttpAnswer cut = Get("label/__name__/values");
  EXPECT_EQ(Data(cut).size(), 10'000u);
  ASSERT_EQ(cut.json()["warnings"].size(), 1u);
  EXPECT_NE(cut.json()["warnings"][0].get<std::string>().find("more than 10000"), std::string::npos);
  EXPECT_EQ(Data(Get("label/country/values")), Json::parse(R"(["?", "DE"])"));
}

TEST_F(PrometheusTest, MistakesHaveItsForm) {
  Serve();
  Load();
  ExpectError(Get("query_range?query=rate(visits:views%5B5m%5D)&start=1&end=2&step=1"), 400, "bad_data",
              "'rate'");
  ExpectError(HttpClient(port()).Ask("POST", "/api/v1/query", "query=up", kForm), 400, "bad_data",
              "REPORT:METRIC");
  ExpectError(HttpClient(port()).Ask("POST", "/api/v1/query", "query=%zz", kForm), 400, "bad_data", "%25");
  ExpectError(Get("query_range?query=visits:views&start=x&end=2&step=1"), 400, "bad_data", "start: ");
  ExpectError(Get("query_range?query=visits:views&start=1&step=1"), 400, "bad_data", "end: is missing");
  ExpectError(Get("query_range?query=visits:views&start=1&end=2"), 400, "bad_data", "step: ");
  ExpectError(Get("query?query=visits:views&time=1e300"), 400, "bad_data", "time: ");
  ExpectError(Get("query?query=visits:nothing&time=1767312000"), 404, "not_found", "nothing");
  ExpectError(Get("series"), 400, "bad_data", "match[]");
  ExpectError(Get("series?match%5B%5D=a:b&match%5B%5D=visits:views"), 400, "bad_data", "several times");
  ExpectError(Get("labels?match%5B%5D=visits:nothing"), 404, "not_found", "nothing");
  ExpectError(Get("labels?dataset=nosuch"), 404, "not_found", "nosuch");
  ExpectError(Get("label/country/values?dataset=nosuch"), 404, "not_found", "nosuch");
  ExpectError(Get("labels?match%5B%5D=visits:views%7Bcity%3D%22x%22%7D"), 400, "bad_data", "'city'");
  ExpectError(Get("query?query=" + std::string(400, '9')), 400, "bad_data", "query: ");
  // A decoded form takes more memory than its text, so its parameters are limited, too.
  std::string many;
  for (int i = 0; i < 101; ++i) many += "a&";
  ExpectError(HttpClient(port()).Ask("POST", "/api/v1/query", many, kForm), 400, "bad_data",
              "100 parameters");
  EXPECT_EQ(HttpClient(port()).Ask("POST", "/api/v1/metadata", std::string(70'000, 'a'), kForm).status, 413);
  EXPECT_EQ(HttpClient(port()).Ask("POST", "/api/v1/label/country/values", "", kForm).status, 405);
  EXPECT_EQ(Get("rules").status, 404);
  EXPECT_EQ(HttpClient(port()).Ask("DELETE", "/api/v1/query").status, 405);
}

TEST_F(PrometheusTest, ACallerSeesTheReportsThatItMayRead) {
  const testing::TempDir dir;
  testing::WriteTokenList(dir / "tokens.json", {{"chart", R"({"reports/visits": "read"})"}});
  ServerOptions options = Options();
  options.tokens = dir / "tokens.json";
  Serve(options);
  Load();
  const HttpHeaders chart = {{"Authorization", "Bearer chart"}};
  EXPECT_EQ(Data(Get("label/__name__/values", chart)), Json::parse(R"(["visits:views"])"));
  EXPECT_EQ(Data(Get("query?query=sum(visits:views%5B1d%5D)&time=1767312000", chart))["result"].size(), 1u);
  // With which Grafana looks whether anybody answers.
  HttpHeaders form = chart;
  form.insert(kForm.begin(), kForm.end());
  EXPECT_EQ(Data(HttpClient(port()).Ask("POST", "/api/v1/query", "query=1%2B1&time=4", form))["result"][1],
            "2");
  ExpectError(Get("query?query=sum(secret:views%5B1d%5D)&time=1767312000", chart), 403, "execution", "right");
  ExpectError(Get("series?match%5B%5D=secret:views", chart), 403, "execution", "right");
  for (const char* target :
       {"labels?match%5B%5D=secret:views", "label/country/values?match%5B%5D=secret:views",
        "label/__name__/values?match%5B%5D=secret:views"})
    ExpectError(Get(target, chart), 403, "execution", "right");
  EXPECT_EQ(Get("labels").status, 401);
  EXPECT_EQ(Get("nothing").status, 401);
}

}  // namespace
}  // namespace kvstore
