#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/kv_program.h"
#include "tests/support/kv_server.h"

namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class KvExec : public KvProgram {
 protected:
  /// Returns the answers of one process to all requests.
  std::vector<std::string> Exec(const std::vector<std::string>& requests) const {
    std::string input;
    for (const std::string& request : requests) input += request + "\n";
    std::stringstream lines(Ok({"exec"}, input));
    std::vector<std::string> answers;
    for (std::string line; std::getline(lines, line);) answers.push_back(line);
    EXPECT_EQ(answers.size(), requests.size());
    return answers;
  }
};

// Calls each operation of docs/json-lines.md once and checks its answer as a program sees it.
TEST_F(KvExec, EveryOperation) {
  const std::vector<std::pair<std::string, std::string>> dialogue = {
      {R"({"op":"create_dataset","dataset":"events","max_versions":3})", R"({"ok":true})"},
      {R"({"op":"create_dataset","dataset":"pins","shape":"objects","type":7})", R"({"ok":true})"},
      {R"({"op":"create_dataset","dataset":"boards","shape":"mappings","durability":"machine"})",
       R"({"ok":true})"},
      {R"({"op":"alter_dataset","dataset":"events","max_versions":2})", R"({"ok":true})"},
      {R"({"op":"list_datasets"})",
       R"({"datasets":[{"backend":"rocksdb","blob_threshold":0,"compression":"lz4","dataset":"boards","durability":"machine","max_versions":1,"shape":"mappings","ttl_ms":0},{"backend":"rocksdb","blob_threshold":0,"compression":"lz4","dataset":"events","durability":"process","max_versions":2,"shape":"rows","ttl_ms":0},{"backend":"rocksdb","blob_threshold":0,"compression":"lz4","dataset":"pins","durability":"process","max_versions":1,"shape":"objects","ttl_ms":0,"type":7}],"ok":true})"},
      {R"({"op":"put_row","dataset":"events","row":"user:7","items":[{"column":"click","value":"pin:1","timestamp":10},{"column":"view","value":"pin:2","timestamp":10}]})",
       R"({"ok":true})"},
      {R"({"op":"put_row","dataset":"events","row":"user:7","items":[{"column":"click","value":"pin:3","timestamp":20}],"condition":{"column":"click","equals":"pin:1"}})",
       R"({"ok":true})"},
      {R"({"op":"get_row","dataset":"events","row":"user:7","versions":5})",
       R"({"items":[{"cells":[{"timestamp":20,"value":"pin:3"},{"timestamp":10,"value":"pin:1"}],"column":"click"},{"cells":[{"timestamp":10,"value":"pin:2"}],"column":"view"}],"marker":null,"ok":true,"row":"user:7"})"},
      {R"({"op":"get_row","dataset":"events","row":"user:7","columns":["click"],"start_timestamp":10,"end_timestamp":20,"versions":2})",
       R"({"items":[{"cells":[{"timestamp":10,"value":"pin:1"}],"column":"click"}],"marker":null,"ok":true,"row":"user:7"})"},
      {R"({"op":"get_row","dataset":"events","row":"nobody","id":"q1"})",
       R"({"id":"q1","items":[],"marker":null,"ok":true,"row":"nobody"})"},
      {R"({"op":"put_rows","dataset":"events","rows":[{"row":"a","items":[{"column":"x","value":"1","timestamp":1}]},{"row":"","items":[{"column":"x","value":"1"}]}]})",
       R"({"ok":true,"results":[{"ok":true},{"error":{"code":"INVALID_ARGUMENT","message":"row: a key has 1 to 1024 bytes, this one has 0"},"ok":false}]})"},
      {R"({"op":"get_rows","dataset":"events","rows":[{"row":"a"},{"row":"nobody"}]})",
       R"({"ok":true,"results":[{"items":[{"cells":[{"timestamp":1,"value":"1"}],"column":"x"}],"marker":null,"ok":true,"row":"a"},{"items":[],"marker":null,"ok":true,"row":"nobody"}]})"},
      {R"({"op":"scan_rows","dataset":"events","start_row":"a","end_row":"b"})",
       R"({"marker":null,"ok":true,"rows":[{"items":[{"cells":[{"timestamp":1,"value":"1"}],"column":"x"}],"row":"a"}]})"},
      {R"({"op":"delete_row","dataset":"events","row":"user:7","columns":["view"]})", R"({"ok":true})"},
      {R"({"op":"delete_rows","dataset":"events","rows":[{"row":"a"},{"row":"user:7","columns":["click"]}]})",
       R"({"ok":true,"results":[{"ok":true},{"ok":true}]})"},
      {R"({"op":"scan_rows","dataset":"events"})", R"({"marker":null,"ok":true,"rows":[]})"},
      {R"({"op":"compact","dataset":"events"})", R"({"ok":true})"},
      {R"({"op":"create_object","dataset":"pins","data":{"title":"a chair"},"shard":5})",
       R"({"object_id":"352324757225473","ok":true})"},
      {R"({"op":"update_object","dataset":"pins","object_id":"352324757225473","merge_patch":{"colour":"red","title":null}})",
       R"({"data":{"colour":"red"},"ok":true})"},
      {R"({"op":"get_objects","dataset":"pins","object_ids":["352324757225474"]})",
       R"({"ok":true,"results":[{"error":{"code":"NOT_FOUND","message":"object_id: there is no object 352324757225474"},"ok":false}]})"},
      {R"({"op":"scan_objects","dataset":"pins","end_id":"352324757225473"})",
       R"({"marker":null,"objects":[],"ok":true})"},
      {R"({"op":"delete_object","dataset":"pins","object_id":352324757225473})", R"({"ok":true})"},
      {R"({"op":"delete_object","dataset":"pins","object_id":"352324757225473","hard":true})",
       R"({"ok":true})"},
      {R"({"op":"add_mapping","dataset":"boards","from":"352324757225473","to":9,"sequence":4})",
       R"({"ok":true})"},
      {R"({"op":"add_mapping","dataset":"boards","from":"352324757225473","to":8,"sequence":5})",
       R"({"ok":true})"},
      {R"({"op":"list_mapping","dataset":"boards","from":"352324757225473","order":"desc"})",
       R"({"entries":[{"sequence":5,"to":"8"},{"sequence":4,"to":"9"}],"marker":null,"ok":true})"},
      {R"({"op":"count_mapping","dataset":"boards","from":"352324757225473"})", R"({"count":2,"ok":true})"},
      {R"({"op":"scan_mappings","dataset":"boards"})",
       R"({"entries":[{"from":"352324757225473","sequence":5,"to":"8"},{"from":"352324757225473","sequence":4,"to":"9"}],"marker":null,"ok":true})"},
      {R"({"op":"remove_mapping","dataset":"boards","from":"352324757225473","to":9})",
       R"({"ok":true,"removed":true})"},
      {R"({"op":"remove_mapping","dataset":"boards","from":"352324757225473","to":9})",
       R"({"ok":true,"removed":false})"},
      {R"({"op":"drop_dataset","dataset":"events"})", R"({"ok":true})"},
      {R"({"op":"get_row","dataset":"events","row":"a"})",
       R"({"error":{"code":"NOT_FOUND","message":"dataset: there is none named 'events'"},"ok":false})"},
  };
  std::vector<std::string> requests;
  for (const auto& [request, answer] : dialogue) requests.push_back(request);
  const auto answers = Exec(requests);
  ASSERT_EQ(answers.size(), dialogue.size());
  for (size_t i = 0; i < dialogue.size(); ++i) EXPECT_EQ(answers[i], dialogue[i].second) << dialogue[i].first;
}

TEST_F(KvExec, ReportsAreAnsweredInProcessAndByAServer) {
  const std::string requests =
      R"({"op":"create_report","report":"flights","segment_keys":["carrier"],"metrics":["departures"],"resolution":"1h"})"
      "\n"
      R"({"op":"write_points","report":"flights","batch":"b","points":[{"metric":"departures","time":"2013-01-01","segments":{"carrier":"UA"},"value":3}]})"
      "\n"
      R"({"op":"query_report","report":"flights","metrics":["departures"],"from":"2013-01-01","to":"2013-02-01","step":"1d","group_by":["carrier"]})"
      "\n"
      R"({"op":"query_report","report":"flights","metrics":["none"],"from":0,"to":1})"
      "\n"
      R"({"op":"list_reports"})"
      "\n";
  const auto check = [](const std::string& printed) {
    std::stringstream lines(printed);
    std::vector<Json> answers;
    for (std::string line; std::getline(lines, line);) answers.push_back(Json::parse(line));
    ASSERT_EQ(answers.size(), 5u) << printed;
    EXPECT_EQ(answers[0], Json::parse(R"({"ok":true})"));
    EXPECT_EQ(answers[1], Json::parse(R"({"ok":true,"written":1})"));
    EXPECT_EQ(
        answers[2]["series"],
        Json::parse(R"([{"metric":"departures","segments":{"carrier":"UA"},"points":[[1356998400000,3]]}])"));
    EXPECT_EQ(answers[2]["cost"]["rows"], 1);
    EXPECT_EQ(answers[3]["error"]["code"], "NOT_FOUND");
    EXPECT_EQ(answers[4]["reports"], Json::array({"flights"}));
  };
  check(Ok({"exec"}, requests));
  const KvServer server(KV_PROGRAM, {"--data", (dir_ / "served").string()});
  const Output output = RunProgram({KV_PROGRAM, "--server", server.address(), "exec"}, requests);
  EXPECT_EQ(output.code, 0) << output.err;
  check(output.out);
}

TEST_F(KvExec, AnObjectIsReadWithItsTimestamp) {
  const auto answers =
      Exec({R"({"op":"create_dataset","dataset":"pins","shape":"objects","type":7})",
            R"({"op":"create_object","dataset":"pins","data":{"n":18446744073709551615},"shard":5})",
            R"({"op":"get_object","dataset":"pins","object_id":"352324757225473"})"});
  const Json object = Json::parse(answers[2]);
  EXPECT_EQ(object["data"].dump(), R"({"n":18446744073709551615})");
  EXPECT_TRUE(object["timestamp"].is_number_unsigned());
}

TEST_F(KvExec, AssignedTimestampsAreAnsweredAndPagesContinue) {
  const auto first = Exec(
      {R"({"op":"create_dataset","dataset":"d"})",
       R"({"op":"put_row","dataset":"d","row":"r","items":[{"column":"a","value":"1"},{"column":"b","value":"2"}]})",
       R"({"op":"get_row","dataset":"d","row":"r","limit":1})"});
  const Json put = Json::parse(first[1]);
  EXPECT_GT(put["timestamp"], 1'600'000'000'000);
  const Json page = Json::parse(first[2]);
  EXPECT_EQ(page["items"][0]["cells"][0]["timestamp"], put["timestamp"]);
  // The marker stays valid in another process.
  const auto second =
      Exec({Json{{"op", "get_row"}, {"dataset", "d"}, {"row", "r"}, {"marker", page["marker"]}}.dump()});
  EXPECT_EQ(Json::parse(second[0])["items"][0]["column"], "b");
}

TEST_F(KvExec, RequestsThatFailDoNotEndIt) {
  const Output output = Kv({"exec"}, "not json\n\n{\"op\":\"list_datasets\"}\n{\"op\":\"put_row\"}");
  EXPECT_EQ(output.code, 0);
  std::stringstream lines(output.out);
  std::vector<bool> ok;
  for (std::string line; std::getline(lines, line);) ok.push_back(Json::parse(line)["ok"]);
  EXPECT_EQ(ok, (std::vector<bool>{false, true, false}));
}

TEST_F(KvExec, AReaderThatGoesAwayIsAnError) {
  const Output output =
      RunProgram({"sh", "-c",
                  std::string("yes '{\"op\":\"list_datasets\"}' | head -n 200000 | ") + KV_PROGRAM +
                      " --data " + (dir_ / "s").string() + " exec | head -n 1"});
  EXPECT_EQ(output.code, 0);
  EXPECT_NE(output.err.find("cannot write the answers"), std::string::npos) << output.err;
}

}  // namespace
}  // namespace kvstore::testing
