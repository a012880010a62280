#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/kv_program.h"

/// kv report create, show, alter, list, drop, and wrong command lines of all of them.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class KvReport : public KvProgram {
 protected:
  void CreateFlights() {
    EXPECT_EQ(Ok({"report", "create", "flights", "--key", "carrier", "--key", "origin=?", "--metric",
                  "departures", "--metric", "delay:distribution", "--resolution", "1h", "--period", "30d",
                  "--salts", "2", "--retention", "0"}),
              "created flights\n");
  }
  /// Expects exit code 2, and this text on standard error.
  void Wrong(const std::vector<std::string>& arguments, const std::string& text) const {
    const Output output = Kv(arguments);
    EXPECT_EQ(output.code, 2) << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_NE(output.err.find(text), std::string::npos) << "'" << text << "' is not in: " << output.err;
  }
};

TEST_F(KvReport, IsCreatedAndShown) {
  CreateFlights();
  EXPECT_EQ(Ok({"report", "show", "flights", "--metrics", "*"}),
            "SETTING              VALUE\n"
            "report               flights\n"
            "resolution           1h\n"
            "period of a row      30d\n"
            "salts                2\n"
            "points expire after  never\n"
            "\n"
            "SEGMENT KEY  DEFAULT  VALUES\n"
            "carrier      -        0\n"
            "origin       '?'      1\n"
            "\n"
            "METRIC      KIND\n"
            "delay       distribution\n"
            "departures  value\n");
  EXPECT_EQ(Ok({"report", "list"}), "REPORT\nflights\n");
}

TEST_F(KvReport, ShowReadsTheMetricsThatAreNamed) {
  CreateFlights();
  const std::string none = Ok({"report", "show", "flights"});
  EXPECT_EQ(none.find("departures"), std::string::npos) << none;
  EXPECT_NE(none.find("--metrics '*' for all"), std::string::npos) << none;
  const std::string one = Ok({"report", "show", "flights", "--metrics", "delay"});
  EXPECT_NE(one.find("delay   distribution"), std::string::npos) << one;
  EXPECT_EQ(one.find("departures"), std::string::npos) << one;
  const std::string limited = Ok({"report", "show", "flights", "--metrics", "de*", "--limit", "1"});
  EXPECT_NE(limited.find("delay"), std::string::npos) << limited;
  EXPECT_NE(limited.find("and 1 more: --limit 2\n"), std::string::npos) << limited;
  const std::string several =
      Ok({"report", "show", "flights", "--metrics", "delay", "--metrics", "d*ures", "--limit", "5"});
  EXPECT_NE(several.find("delay       distribution\ndepartures  value\n"), std::string::npos) << several;
  EXPECT_EQ(several.find("more"), std::string::npos) << several;
  Fails({"report", "show", "flights", "--metrics", "arrivals"}, "report 'flights' has no metric 'arrivals'");
}

TEST_F(KvReport, ShowHasTheJsonOfReportInfo) {
  CreateFlights();
  const Json shown = Json::parse(Ok({"report", "show", "flights", "--metrics", "departures", "--json"}));
  EXPECT_EQ(shown, Json::parse(R"({"ok":true,"report":"flights",
      "segment_keys":[{"name":"carrier"},{"name":"origin","default":"?"}],
      "segment_values":{"carrier":[],"origin":["?"]},
      "metrics":[{"name":"departures","kind":"value"}],"metrics_left_out":0,"rollups":[],
      "resolution":"1h","period":"30d","salts":2,"retention":"0"})"));
}

TEST_F(KvReport, IsAltered) {
  CreateFlights();
  EXPECT_EQ(Ok({"report", "alter", "flights", "--add-key", "dest=none", "--add-metric", "planes:distinct",
                "--add-metric", "late", "--retention", "400d"}),
            "altered flights\n");
  const Json shown = Json::parse(Ok({"report", "show", "flights", "--metrics", "planes", "--json"}));
  EXPECT_EQ(shown["segment_keys"][2], Json::parse(R"({"name":"dest","default":"none"})"));
  EXPECT_EQ(shown["metrics"][0]["kind"], "distinct");
  EXPECT_EQ(shown["retention"], "400d");
}

TEST_F(KvReport, RollupsAreDeclaredAndRemoved) {
  CreateFlights();
  Ok({"report", "alter", "flights", "--rollup", "carrier@1d", "--rollup", "@6h"});
  const Json shown = Json::parse(Ok({"report", "show", "flights", "--json"}));
  EXPECT_EQ(shown["rollups"], Json::parse(R"([{"keys":["carrier"],"step":"1d"},{"keys":[],"step":"6h"}])"));
  Ok({"report", "alter", "flights", "--no-rollups"});
  EXPECT_EQ(Json::parse(Ok({"report", "show", "flights", "--json"}))["rollups"], Json::array());
}

TEST_F(KvReport, IsDroppedWhenItIsSaidTwice) {
  CreateFlights();
  Fails({"report", "drop", "flights"},
        "this would remove report flights with all of its points for good; nothing was removed; say --yes to "
        "do it");
  EXPECT_EQ(Ok({"report", "list"}), "REPORT\nflights\n");
  EXPECT_EQ(Ok({"report", "drop", "flights", "--yes"}), "dropped flights\n");
  EXPECT_EQ(Ok({"report", "list"}), "(none)\n");
  Fails({"report", "drop", "flights", "--yes"},
        "there is no report 'flights'\n    see which there are: kv report list");
}

TEST_F(KvReport, MayLieInAnotherDataset) {
  Ok({"report", "create", "site", "--metric", "clicks", "--dataset", "other"});
  EXPECT_EQ(Ok({"report", "list", "--dataset", "other"}), "REPORT\nsite\n");
  EXPECT_EQ(Ok({"report", "list"}), "(none)\n");
  EXPECT_NE(Ok({"dataset", "list"}).find("other"), std::string::npos);
}

TEST_F(KvReport, TheSameNameTwiceIsRefused) {
  CreateFlights();
  Fails({"report", "create", "flights"}, "ALREADY_EXISTS: there is a report 'flights' already");
}

TEST_F(KvReport, WrongCommandLinesNameWhatIsWrong) {
  CreateFlights();
  Wrong({"report"}, "kv report: name a command: create, alter, drop, list, show, load, query, top");
  Wrong({"report", "describe", "flights"}, "did you mean kv report show?");
  Wrong({"report", "create"}, "kv report create: report is missing: Name of the report");
  Wrong({"report", "create", "a", "--metric", "delay:distribtion"},
        "--metric: 'delay:distribtion': there is no kind 'distribtion'");
  Wrong({"report", "create", "a", "--key", "=x"}, "--key: '=x' has no name");
  for (const char* const text : {"--salts: Value 65 not in range", "64"}) {
    Wrong({"report", "create", "a", "--salts", "65"}, text);
  }
  Wrong({"report", "create", "a", "--resolution", "soon"},
        "--resolution: 'soon': give a whole number of milliseconds");
  Wrong({"report", "create", "a", "--period", "1500ms"}, "--period: must be a whole number of seconds");
  Wrong({"report", "alter", "flights"}, "change: name one: --add-key");
  Wrong({"report", "alter", "flights", "--add-key", "dest"},
        "--add-key: 'dest': the points that are there need a default: dest=DEFAULT");
  Wrong({"report", "alter", "flights", "--rollup", "carrier"}, "--rollup: 'carrier': give the segment keys");
  Wrong({"report", "delete", "flights", "departures", "--from", "2013-01-01"}, "--to is missing");
  Wrong({"report", "delete", "flights", "departures", "--from", "2013-01-01", "--to", "2013-01-01"},
        "--to: must be later than --from");
  Fails({"report", "create", "a", "--period", "90m", "--resolution", "1h"}, "multiple of the resolution");
}

}  // namespace
}  // namespace kvstore::testing
