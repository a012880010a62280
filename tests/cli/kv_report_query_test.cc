#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"
#include "tests/support/kv_server.h"

/// kv report query, top, delete, compact. The answers are computed by hand.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class KvReportQuery : public KvProgram {
 protected:
  void SetUp() override {
    Ok({"report", "create", "flights", "--key", "carrier", "--key", "origin", "--metric", "departures",
        "--metric", "late", "--metric", "delay:distribution", "--resolution", "1h", "--salts", "2"});
    Load(
        "time,carrier,origin,departures,late\n"
        "2013-01-01T05:00:00Z,UA,EWR,3,1\n"
        "2013-01-01T06:00:00Z,AA,JFK,2,\n"
        "2013-01-02T05:00:00Z,UA,EWR,5,2\n"
        "2013-01-02T07:00:00Z,UA,JFK,4,0\n");
  }
  void Load(const std::string& csv) const { Ok({"report", "load", "flights", "--format", "csv"}, csv); }

  /// The words of a query of the first two days of 2013.
  static std::vector<std::string> TwoDays(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"report",     "query", "flights",   "--from",
                                      "2013-01-01", "--to",  "2013-01-03"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string Query(const std::vector<std::string>& more) const { return Ok(TwoDays(more)); }
  void Wrong(const std::vector<std::string>& more, const std::string& text) const {
    const Output output = Kv(TwoDays(more));
    EXPECT_EQ(output.code, 2) << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_NE(output.err.find(text), std::string::npos) << output.err;
  }
};

TEST_F(KvReportQuery, OneValueForAllOfTheTime) {
  EXPECT_EQ(Query({"departures"}), "METRIC      VALUE\ndepartures  14\n");
  EXPECT_EQ(Query({"departures", "--function", "avg"}), "METRIC      VALUE\ndepartures  3.5\n");
  EXPECT_EQ(Query({"departures", "--function", "p50"}), "METRIC      VALUE\ndepartures  3.5\n");
  EXPECT_EQ(Query({"departures", "late"}), "METRIC      VALUE\ndepartures  14\nlate        3\n");
}

TEST_F(KvReportQuery, StepsStandSideBySide) {
  EXPECT_EQ(Query({"departures", "--step", "1d"}),
            "TIME        departures\n"
            "2013-01-01  5\n"
            "2013-01-02  9\n");
  EXPECT_EQ(Query({"departures", "--step", "1d", "--by", "origin"}),
            "TIME        EWR  JFK\n"
            "2013-01-01  3    2\n"
            "2013-01-02  5    4\n");
  EXPECT_EQ(Query({"departures", "--as", "rate=late / departures", "--step", "1d", "--by", "carrier"}),
            "TIME        departures, AA  departures, UA  rate, AA  rate, UA\n"
            "2013-01-01  2               3               -         0.333\n"
            "2013-01-02  -               9               -         0.222\n");
  EXPECT_EQ(Query({"departures", "--step", "6h", "--where", "origin=EWR"}),
            "TIME              departures\n"
            "2013-01-01 00:00  3\n"
            "2013-01-02 00:00  5\n");
}

TEST_F(KvReportQuery, ManySeriesStandBelowEachOther) {
  std::string csv = "time,carrier,origin,departures\n";
  for (char origin = 'A'; origin <= 'I'; ++origin)
    csv += std::string("2013-01-01T00:00:00Z,XX,") + origin + ",1\n";
  Load(csv);
  const std::string out = Query({"departures", "--step", "1d", "--by", "origin", "--where", "carrier=XX"});
  EXPECT_TRUE(
      out.starts_with("METRIC      origin  TIME        VALUE\n"
                      "departures  A       2013-01-01  1\n"
                      "departures  B       2013-01-01  1\n"))
      << out;
}

TEST_F(KvReportQuery, ConditionsAndFilters) {
  EXPECT_EQ(Query({"departures", "--where", "carrier=UA", "--where", "origin=EWR,LGA"}),
            "METRIC      VALUE\ndepartures  8\n");
  EXPECT_EQ(Query({"departures", "--where", "origin=nowhere"}), "METRIC      VALUE\ndepartures  -\n");
  EXPECT_EQ(
      Query({"departures", "--filter", "united:carrier=UA;origin=*", "--filter", "others:carrier=AA,B6"}),
      "METRIC      FILTER  VALUE\n"
      "departures  united  12\n"
      "departures  others  2\n");
}

TEST_F(KvReportQuery, TopSeries) {
  EXPECT_EQ(Query({"departures", "--by", "origin", "--by", "carrier", "--top", "2"}),
            "METRIC      origin  carrier  VALUE\n"
            "departures  EWR     UA       8\n"
            "departures  JFK     UA       4\n");
  EXPECT_EQ(Query({"departures", "--by", "carrier", "--top", "1:min"}),
            "METRIC      carrier  VALUE\n"
            "departures  UA       12\n");
}

TEST_F(KvReportQuery, GapsAreFilledWhereThatIsAskedFor) {
  const std::vector<std::string> aa = {"departures", "--where", "carrier=AA", "--step", "1d", "--fill"};
  const auto filled = [&](const char* how) {
    std::vector<std::string> words = aa;
    words.emplace_back(how);
    return Query(words);
  };
  EXPECT_EQ(filled("none"), "TIME        departures\n2013-01-01  2\n");
  EXPECT_EQ(filled("zero"), "TIME        departures\n2013-01-01  2\n2013-01-02  0\n");
  EXPECT_EQ(filled("previous"), "TIME        departures\n2013-01-01  2\n2013-01-02  2\n");
}

TEST_F(KvReportQuery, ComparisonsStandBesideTheValue) {
  EXPECT_EQ(Ok({"report", "query", "flights", "departures", "--from", "2013-01-02", "--to", "2013-01-03",
                "--step", "1d", "--compare", "-1d"}),
            "METRIC      TIME        VALUE  BEFORE  CHANGE\n"
            "departures  2013-01-02  9      5       +80.0 %\n");
  EXPECT_EQ(Ok({"report", "query", "flights", "departures", "--from", "2013-01-02", "--to", "2013-01-03",
                "--by", "carrier", "--compare", "-1d"}),
            "METRIC      carrier  VALUE  BEFORE  CHANGE\n"
            "departures  AA       -      2       -\n"
            "departures  UA       9      3       +200.0 %\n");
}

TEST_F(KvReportQuery, CsvIsExact) {
  EXPECT_EQ(Query({"departures", "--step", "1d", "--by", "origin", "--csv"}),
            "metric,origin,time,value\n"
            "departures,EWR,2013-01-01T00:00:00Z,3\n"
            "departures,EWR,2013-01-02T00:00:00Z,5\n"
            "departures,JFK,2013-01-01T00:00:00Z,2\n"
            "departures,JFK,2013-01-02T00:00:00Z,4\n");
  EXPECT_EQ(Query({"--as", "r=late / departures", "--where", "carrier=UA", "--csv"}),
            "metric,time,value\nr,2013-01-01T00:00:00Z,0.25\n");
  EXPECT_EQ(Ok({"report", "query", "flights", "departures", "--from", "2013-01-02", "--to", "2013-01-03",
                "--filter", "a,b:", "--compare", "-1d", "--csv"}),
            "metric,filter,time,value,compared_time,compared\n"
            "departures,\"a,b\",2013-01-02T00:00:00Z,9,2013-01-01T00:00:00Z,5\n");
}

TEST_F(KvReportQuery, JsonIsTheAnswerOfQueryReport) {
  const Json answer = Json::parse(Query({"departures", "--step", "1d", "--by", "origin", "--json"}));
  EXPECT_EQ(answer["ok"], true);
  EXPECT_EQ(answer["series"], Json::parse(R"([
      {"metric":"departures","segments":{"origin":"EWR"},"points":[[1356998400000,3],[1357084800000,5]]},
      {"metric":"departures","segments":{"origin":"JFK"},"points":[[1356998400000,2],[1357084800000,4]]}])"));
  EXPECT_EQ(answer["partial"], false);
  EXPECT_GT(answer["cost"]["chunks"].get<int>(), 0);
}

TEST_F(KvReportQuery, ChartsHaveALineForEachSeries) {
  EXPECT_EQ(Query({"departures", "--step", "1d", "--by", "origin", "--chart"}),
            "EWR  ▁█  3 to 5\n"
            "JFK  ▁█  2 to 4\n"
            "     2013-01-01 to 2013-01-02, 2 steps\n");
}

TEST_F(KvReportQuery, PicturesAreFiles) {
  const std::string file = (dir_ / "a.svg").string();
  EXPECT_EQ(Query({"departures", "--step", "1d", "--by", "origin", "--svg", file}),
            "drew 2 series in " + file + "\n");
  std::ifstream in(file);
  const std::string svg((std::istreambuf_iterator<char>(in)), {});
  for (const char* const part :
       {"<svg", ">EWR<", ">JFK<", ">flights: departures<", ">01-01 00:00<", "dark"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part << " is not in " << svg;
  }
  Fails(TwoDays({"departures", "--step", "1d", "--svg", (dir_ / "no" / "a.svg").string()}), "cannot create");
  Wrong({"departures", "--svg", file}, "--svg: draws values over time: name their --step");
}

TEST_F(KvReportQuery, ExplainTellsTheCost) {
  const std::string out = Query({"departures", "--explain"});
  EXPECT_TRUE(out.starts_with("METRIC      VALUE\ndepartures  14\n\nMETRIC")) << out;
  EXPECT_NE(out.find("CHUNKS READ"), std::string::npos) << out;
  EXPECT_NE(out.find("\n(all) "), std::string::npos) << out;
}

TEST_F(KvReportQuery, DaysAreThoseOfTheZone) {
  Ok({"report", "create", "site", "--metric", "clicks", "--resolution", "1h"});
  std::string csv = "time,clicks\n";
  // Every hour of three days, in the middle of which clocks are put forward in Berlin.
  constexpr int64_t kFirst = 1'364'601'600'000;  // 2013-03-30T00:00:00Z
  for (int64_t hour = 0; hour < 72; ++hour) csv += std::to_string(kFirst + hour * 3'600'000) + ",1\n";
  Ok({"report", "load", "site", "--format", "csv"}, csv);
  EXPECT_EQ(Ok({"report", "query", "site", "clicks", "--from", "2013-03-31", "--to", "2013-04-02", "--step",
                "1d", "--zone", "Europe/Berlin"}),
            "TIME, Europe/Berlin  clicks\n"
            "2013-03-31           23\n"
            "2013-04-01           24\n");
  EXPECT_EQ(Ok({"report", "query", "site", "clicks", "--from", "2013-03-31T00:00:00Z", "--to",
                "2013-03-31T02:00:00Z", "--step", "1h", "--zone", "Europe/Berlin"}),
            "TIME, Europe/Berlin      clicks\n"
            "2013-03-31 01:00 +01:00  1\n"
            "2013-03-31 03:00 +02:00  1\n");
}

TEST_F(KvReportQuery, TimesRelativeToNow) {
  // An hour ago and a year ago, as multiples of the resolution.
  Ok({"report", "create", "site", "--metric", "clicks"});
  const auto now = static_cast<int64_t>(std::time(nullptr)) * 1000;
  Ok({"report", "load", "site", "--format", "csv"}, "time,clicks\n" + std::to_string(now - 3'600'000) +
                                                        ",1\n" + std::to_string(now - 31'536'000'000) +
                                                        ",2\n");
  EXPECT_EQ(Ok({"report", "query", "site", "clicks"}), "METRIC  VALUE\nclicks  1\n") << "the last 30 days";
  EXPECT_EQ(Ok({"report", "query", "site", "clicks", "--from", "-2y", "--to", "now"}),
            "METRIC  VALUE\nclicks  3\n");
  EXPECT_EQ(Ok({"report", "query", "site", "clicks", "--from", "-2y", "--to", "-30d"}),
            "METRIC  VALUE\nclicks  2\n");
}

TEST_F(KvReportQuery, TopHasTheShareOfTheWhole) {
  const std::vector<std::string> top = {"report", "top",    "flights",    "departures", "--by",
                                        "origin", "--from", "2013-01-01", "--to",       "2013-01-03"};
  EXPECT_EQ(Ok(top), "origin  VALUE  SHARE\nEWR     8      57.1 %\nJFK     6      42.9 %\n");
  std::vector<std::string> one = top;
  one.insert(one.end(), {"-n", "1", "--where", "carrier=UA"});
  EXPECT_EQ(Ok(one), "origin  VALUE  SHARE\nEWR     8      66.7 %\n");
  std::vector<std::string> max = top;
  max.insert(max.end(), {"--function", "max"});
  EXPECT_EQ(Ok(max), "origin  VALUE\nEWR     5\nJFK     4\n");
  std::vector<std::string> json = top;
  json.emplace_back("--json");
  const Json answer = Json::parse(Ok(json));
  EXPECT_EQ(answer["totals"], Json::parse(R"([{"value":14}])"));
  EXPECT_EQ(answer["series"][0]["points"][0][1], 8);
}

TEST_F(KvReportQuery, DeletedPointsAreGone) {
  EXPECT_TRUE(Ok({"report", "delete", "flights", "departures", "--from", "2013-01-01", "--to", "2013-01-02"})
                  .starts_with("deleted from 2013-01-01T00:00:00Z to 2013-01-02T00:00:00Z, in "));
  EXPECT_EQ(Query({"departures", "late"}), "METRIC      VALUE\ndepartures  9\nlate        3\n")
      << "late stays";
  Fails({"report", "delete", "flights", "arrivals", "--from", "2013-01-01", "--to", "2013-01-02"},
        "has no metric 'arrivals'");
}

TEST_F(KvReportQuery, CompactionChangesNoAnswer) {
  for (int i = 0; i < 5; ++i)
    Load("time,carrier,origin,departures\n2013-01-01T05:00:00Z,UA,EWR," + std::to_string(i) + "\n");
  const std::string before = Query({"departures", "--step", "1h", "--by", "origin"});
  const Json compacted = Json::parse(Ok({"report", "compact", "flights", "--json"}));
  EXPECT_GT(compacted["chunks_merged"].get<int>(), 0);
  EXPECT_EQ(Query({"departures", "--step", "1h", "--by", "origin"}), before);
}

TEST_F(KvReportQuery, RollupsChangeNoAnswer) {
  const std::string before = Query({"departures", "--step", "1d", "--by", "origin"});
  Ok({"report", "alter", "flights", "--rollup", "origin@1d"});
  EXPECT_GT(Json::parse(Ok({"report", "rollup", "flights", "--json"}))["rows"].get<int>(), 0);
  EXPECT_EQ(Query({"departures", "--step", "1d", "--by", "origin"}), before);
}

TEST_F(KvReportQuery, DistributionsHavePercentiles) {
  Ok({"report", "load", "flights", "--format", "jsonl"},
     R"({"time":"2013-01-01","carrier":"UA","origin":"EWR","delay":[1,2,3,4,100]})");
  EXPECT_EQ(Query({"delay", "--function", "max"}), "METRIC  VALUE\ndelay   100\n");
  EXPECT_EQ(Query({"delay", "--function", "count"}), "METRIC  VALUE\ndelay   5\n");
  const Json answer = Json::parse(Query({"delay", "--function", "p50", "--json"}));
  EXPECT_NEAR(answer["series"][0]["points"][0][1].get<double>(), 3, 0.03);
  Fails(TwoDays({"delay"}),
        "metric 'delay' is of kind distribution, which has count, min, max and percentiles");
}

TEST_F(KvReportQuery, NoTerminalObeysWhatIsStored) {
  Ok({"report", "load", "flights", "--format", "jsonl"},
     R"({"time":"2013-01-01","carrier":"\u001b[31mred","origin":"EWR","late":7})");
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{}, {"--step", "1d"}, {"--step", "1d", "--chart"}, {"--json"}}) {
    std::vector<std::string> words = {"late", "--by", "carrier"};
    words.insert(words.end(), how.begin(), how.end());
    const std::string out = Query(words);
    EXPECT_EQ(out.find('\x1b'), std::string::npos) << out;
    EXPECT_NE(out.find("[31mred"), std::string::npos) << out;
  }
}

TEST_F(KvReportQuery, AServerGivesTheSameAnswers) {
  const std::vector<std::string> query = TwoDays({"departures", "late", "--step", "1d", "--by", "origin"});
  const std::vector<std::string> show = {"report", "show", "flights", "--metrics", "*"};
  const std::string answer = Ok(query);
  const std::string shown = Ok(show);
  const KvServer server(KV_PROGRAM, {"--data", (dir_ / "store").string()});
  const auto remote = [&](std::vector<std::string> words, const std::string& input) {
    words.insert(words.begin(), {KV_PROGRAM, "--server", server.address()});
    const Output output = RunProgram(words, input);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  };
  EXPECT_EQ(remote(query, ""), answer);
  EXPECT_EQ(remote(show, ""), shown);
  const std::string loaded = remote({"report", "load", "flights", "--format", "csv"},
                                    "time,carrier,origin,departures\n2013-01-01T05:00:00Z,UA,EWR,10\n");
  EXPECT_TRUE(loaded.starts_with("1 lines: 1 points, 0 rejected")) << loaded;
  EXPECT_EQ(remote(TwoDays({"departures"}), ""), "METRIC      VALUE\ndepartures  21\n");
}

TEST_F(KvReportQuery, MistakesAreNamed) {
  Wrong({}, "metric: name one, or a calculation with --as NAME=EXPRESSION");
  Wrong({"departures", "--step", "day"}, "--step: 'day' is not a stretch of time");
  Wrong({"departures", "--chart"}, "--chart: draws values over time: name their --step");
  Wrong({"departures", "--csv", "--json"}, "--csv: not with --json");
  Wrong({"departures", "--csv", "--explain"}, "--explain: not with --csv");
  Wrong({"departures", "--csv", "--chart", "--step", "1d"}, "excludes");
  Fails(TwoDays({"arrivals"}), "report 'flights' has no metric 'arrivals'");
  Fails(TwoDays({"departures", "--by", "dest"}), "dest");
  Fails(TwoDays({"--as", "x=late /"}), "expression: a metric, a number or '(' is expected at character 7");
  Fails({"report", "query", "nothing", "departures"}, "there is no report 'nothing'");
}

}  // namespace
}  // namespace kvstore::testing
