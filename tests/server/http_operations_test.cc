#include <set>

#include "server/http/json_operations.h"
#include "tests/server/http_fixture.h"

/// Every operation through the door, and what a GET is for.
namespace kvstore {
namespace {

using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpTest;
using testing::Json;

Json PutItem(const std::string& column, const std::string& value, int timestamp) {
  return {{"column", column}, {"value", value}, {"timestamp", timestamp}};
}

/// Makes requests and remembers which operations they were.
class HttpOperationsTest : public HttpTest {
 protected:
  void SetUp() override { Serve(); }
  Json Ok(const std::string& operation, const Json& fields) {
    asked_.insert(operation);
    return HttpTest::Ok(operation, fields);
  }

  std::set<std::string> asked_;
};

TEST_F(HttpOperationsTest, EachIsDone) {
  // Datasets.
  EXPECT_EQ(Ok("create_dataset", {{"dataset", "more"}, {"max_versions", 2}}), (Json{{"ok", true}}));
  Ok("alter_dataset", {{"dataset", "more"}, {"ttl_ms", 1000}});
  EXPECT_EQ(Ok("get_dataset", {{"dataset", "more"}})["ttl_ms"], 1000);
  EXPECT_EQ(Ok("list_datasets", Json::object())["datasets"].size(), 4u);
  Ok("compact", {{"dataset", "more"}});
  Ok("drop_dataset", {{"dataset", "more"}});
  Fails("get_dataset", {{"dataset", "more"}}, 404, "NOT_FOUND");

  // Rows.
  const Json rows = {{"dataset", "rows"}};
  const auto with = [](Json fields, const Json& others) {
    fields.update(others);
    return fields;
  };
  Ok("put_row", with(rows, {{"row", "a"}, {"items", {PutItem("x", "1", 1), PutItem("x", "2", 2)}}}));
  EXPECT_TRUE(Ok("put_row", with(rows, {{"row", "b"},
                                        {"items", {{{"column", {{"b64", "/w=="}}}, {"value", ""}}}},
                                        {"condition", {{"column", "x"}, {"absent", true}}}}))
                  .contains("timestamp"));
  EXPECT_EQ(
      Ok("get_row", with(rows, {{"row", "a"}, {"versions", 2}}))["items"],
      Json::parse(R"([{"column":"x","cells":[{"timestamp":2,"value":"2"},{"timestamp":1,"value":"1"}]}])"));
  EXPECT_EQ(Ok("get_row", with(rows, {{"row", "b"}}))["items"][0]["column"],
            Json::parse(R"({"b64":"/w=="})"));
  const Json results =
      Ok("put_rows", with(rows, {{"rows",
                                  {{{"row", "c"}, {"items", {PutItem("x", "3", 3)}}},
                                   {{"row", ""}, {"items", {PutItem("x", "3", 3)}}}}}}))["results"];
  EXPECT_EQ(results[0]["ok"], true);
  EXPECT_EQ(results[1]["error"]["code"], "INVALID_ARGUMENT");
  const Json read = Ok("get_rows", with(rows, {{"rows", {{{"row", "c"}}, {{"row", "none"}}}}}))["results"];
  EXPECT_EQ(read[0]["items"][0]["cells"][0]["value"], "3");
  EXPECT_TRUE(read[1]["items"].empty());
  const Json page = Ok("scan_rows", with(rows, {{"limit", 2}}));
  EXPECT_EQ(page["rows"].size(), 2u);
  EXPECT_EQ(Ok("scan_rows", with(rows, {{"marker", page["marker"]}}))["rows"][0]["row"], "c");
  Ok("delete_row", with(rows, {{"row", "a"}, {"cells", {{{"column", "x"}, {"timestamp", 2}}}}}));
  EXPECT_EQ(Ok("get_row", with(rows, {{"row", "a"}}))["items"][0]["cells"][0]["value"], "1");
  Ok("delete_rows", with(rows, {{"rows", {{{"row", "a"}}, {{"row", "b"}}, {{"row", "c"}}}}}));
  EXPECT_TRUE(Ok("scan_rows", rows)["rows"].empty());
  EXPECT_GE(Ok("list_partitions", with(rows, {{"wanted", 2}}))["partitions"].size(), 1u);
  Ok("get_stats", rows);
  Ok("alter_dataset", with(rows, {{"keep_changes_ms", 60'000}}));
  EXPECT_EQ(Ok("get_dataset", rows)["keep_changes_ms"], 60'000);
  Ok("put_row", with(rows, {{"row", "a"}, {"items", {{{"column", "x"}, {"value", "1"}, {"timestamp", 1}}}}}));
  const Json changes = Ok("read_changes", with(rows, {{"from", "begin"}, {"limit", 10}}));
  ASSERT_EQ(changes["changes"].size(), 1u);
  EXPECT_EQ(changes["changes"][0]["row"], "a");
  EXPECT_GT(changes["complete_until"], 0);
  EXPECT_TRUE(Ok("read_changes", with(rows, {{"from", changes["token"]}}))["changes"].empty());
  Ok("set_consumer", with(rows, {{"name", "search"}, {"token", "begin"}}));
  const Json consumers = OkGet("/v1/datasets/rows/consumers")["consumers"];
  EXPECT_EQ(consumers[0]["name"], "search");
  EXPECT_GT(consumers[0]["lag_ms"], 0);
  EXPECT_EQ(Ok("list_consumers", rows)["consumers"].size(), 1u);
  Ok("drop_consumer", with(rows, {{"name", "search"}}));
  EXPECT_TRUE(Ok("list_consumers", rows)["consumers"].empty());

  // Objects and mappings.
  const Json pins = {{"dataset", "pins"}};
  const std::string id = Ok("create_object", with(pins, {{"data", {{"title", "chair"}}}}))["object_id"];
  EXPECT_EQ(Ok("get_object", with(pins, {{"object_id", id}}))["data"]["title"], "chair");
  EXPECT_EQ(Ok("update_object", with(pins, {{"object_id", id}, {"merge_patch", {{"price", 5}}}}))["data"],
            Json::parse(R"({"price":5,"title":"chair"})"));
  EXPECT_EQ(Ok("get_objects", with(pins, {{"object_ids", {id, "1"}}}))["results"][1]["ok"], false);
  EXPECT_EQ(Ok("scan_objects", pins)["objects"][0]["object_id"], id);
  const Json boards = {{"dataset", "boards"}};
  Ok("add_mapping", with(boards, {{"from", 1}, {"to", id}, {"sequence", 7}}));
  Ok("add_mapping", with(boards, {{"from", 1}, {"to", 2}, {"sequence", 8}}));
  EXPECT_EQ(Ok("count_mapping", with(boards, {{"from", "1"}}))["count"], 2);
  EXPECT_EQ(Ok("list_mapping", with(boards, {{"from", 1}, {"order", "desc"}}))["entries"][0]["to"], "2");
  const Json joined = Ok("list_objects", with(boards, {{"from", 1}}))["objects"];
  EXPECT_EQ(joined[0]["data"]["title"], "chair");
  EXPECT_EQ(joined[1]["ok"], false);
  EXPECT_EQ(Ok("scan_mappings", boards)["entries"].size(), 2u);
  EXPECT_EQ(Ok("remove_mapping", with(boards, {{"from", 1}, {"to", 2}}))["removed"], true);
  Ok("delete_object", with(pins, {{"object_id", id}}));
  Fails("get_object", with(pins, {{"object_id", id}}), 404, "NOT_FOUND");

  // Reports.
  const Json report = {{"report", "visits"}};
  Ok("create_report", with(report, {{"segment_keys", {"country"}},
                                    {"metrics", {"views", {{"name", "users"}, {"kind", "distinct"}}}}}));
  Ok("alter_report", with(report, {{"add_metrics", {"clicks"}}}));
  EXPECT_EQ(Ok("list_reports", Json::object())["reports"], Json::array({"visits"}));
  EXPECT_EQ(Ok("write_points",
               with(report,
                    {{"batch", "one"},
                     {"points",
                      {{{"metric", "views"}, {"time", 1000}, {"segments", {{"country", "DE"}}}, {"value", 3}},
                       {{"metric", "users"},
                        {"time", 1000},
                        {"segments", {{"country", "FR"}}},
                        {"values", {"ann"}}}}}}))["written"],
            2);
  const Json series = Ok("query_report", with(report, {{"metrics", {"views"}},
                                                       {"from", 0},
                                                       {"to", 2000},
                                                       {"group_by", {"country"}},
                                                       {"explain", true}}))["series"];
  EXPECT_EQ(series[0]["segments"]["country"], "DE");
  EXPECT_EQ(series[0]["points"][0][1], 3);
  EXPECT_EQ(Ok("report_info", report)["segment_values"]["country"][0], "DE");
  EXPECT_EQ(Ok("list_metrics", with(report, {{"prefix", "v"}}))["metrics"].size(), 1u);
  Ok("compact_report", report);
  Ok("make_rollups", report);
  Ok("delete_points", with(report, {{"metrics", {"views"}}, {"from", 0}, {"to", 2000}}));
  Ok("drop_report", report);

  // The server itself, which has neither migrations nor backups nor shards here.
  EXPECT_EQ(Ok("get_server", Json::object())["instance"].get<std::string>().size(), 32u);
  EXPECT_NE(Ok("get_metrics", Json::object())["text"].get<std::string>().find("kvstore_calls_in_flight"),
            std::string::npos);
  EXPECT_EQ(Ok("get_history", Json::object())["step_ms"], 10'000);
  for (const auto& [operation, fields] :
       std::map<std::string, Json>{{"migrate", {{"dataset", "rows"}, {"command", "status"}}},
                                   {"create_backup", Json::object()},
                                   {"list_backups", Json::object()},
                                   {"verify_backup", {{"deep", true}}},
                                   {"operate_shards", {{"command", "status"}}},
                                   {"get_shard_map", {{"space", "mod"}}},
                                   {"list_shard_maps", Json::object()}}) {
    Fails(operation, fields, 501, "UNIMPLEMENTED");
    asked_.insert(operation);
  }
  for (const auto& [name, operation] : server::AllJsonOperations())
    EXPECT_TRUE(asked_.contains(name)) << name;
}

TEST_F(HttpOperationsTest, AnOperationThatIsNotInTheTableIsRefused) {
  Fails("get_rwo", Json::object(), 404, "NOT_FOUND", "did you mean get_row");
  Fails("import_rows", Json::object(), 404, "NOT_FOUND");
  Fails("calls", Json::object(), 404, "NOT_FOUND");
  Fails("endpoint", Json::object(), 404, "NOT_FOUND");
}

TEST_F(HttpOperationsTest, FieldsAreCheckedAsThoseOfLinesAre) {
  Fails("get_row", {{"dataset", "rows"}}, 400, "INVALID_ARGUMENT", "row: missing");
  Fails("get_row", {{"dataset", "rows"}, {"row", "r"}, {"versoins", 1}}, 400, "INVALID_ARGUMENT",
        "did you mean versions");
  // The path names the operation, and one request has one answer.
  Fails("get_row", {{"op", "get_row"}, {"dataset", "rows"}, {"row", "r"}}, 400, "INVALID_ARGUMENT",
        "op: unknown");
  Fails("get_row", {{"id", 1}, {"dataset", "rows"}, {"row", "r"}}, 400, "INVALID_ARGUMENT", "id: unknown");
  Fails("get_row", Json::array(), 400, "INVALID_ARGUMENT", "must be a JSON object");
  const HttpAnswer broken = HttpClient(port()).Ask("POST", "/v1/get_row", "{\"dataset\": ");
  Refused(broken, 400, "INVALID_ARGUMENT", "not JSON");
  // A request without fields needs no body.
  EXPECT_EQ(HttpClient(port()).Ask("POST", "/v1/list_datasets").json()["datasets"].size(), 3u);
}

// ---- for people ----

TEST_F(HttpOperationsTest, AGetReadsWhatAPersonTypes) {
  PutCell("user:7", "pin:3");
  PutCell("a/b c", "odd");
  EXPECT_EQ(OkGet("/v1/datasets")["datasets"].size(), 3u);
  EXPECT_EQ(OkGet("/v1/datasets/rows")["shape"], "rows");
  EXPECT_TRUE(OkGet("/v1/datasets/rows/stats").contains("approximate_bytes"));
  EXPECT_TRUE(OkGet("/v1/datasets/rows/partitions?wanted=2").contains("partitions"));
  EXPECT_EQ(OkGet("/v1/datasets/rows/rows/user:7?versions=2")["items"][0]["cells"][0]["value"], "pin:3");
  EXPECT_EQ(OkGet("/v1/datasets/rows/rows/a%2Fb%20c")["items"][0]["cells"][0]["value"], "odd");
  EXPECT_EQ(OkGet("/v1/datasets/rows/rows/%FF%00")["row"], Json::parse(R"({"b64":"/wA="})"));
  EXPECT_EQ(OkGet("/v1/datasets/rows/rows/user:7?columns=none&columns=other")["items"].size(), 0u);
  EXPECT_EQ(OkGet("/v1/datasets/rows/rows/user:7?columns=none&columns=c")["items"].size(), 1u);
  const Json page = OkGet("/v1/datasets/rows/rows?limit=1&start_row=a+a");
  EXPECT_EQ(page["rows"].size(), 1u);
  EXPECT_EQ(OkGet("/v1/datasets/rows/rows?marker=" + page["marker"].get<std::string>())["rows"].size(), 1u);
  const std::string id =
      Ok("create_object", {{"dataset", "pins"}, {"data", {{"title", "chair"}}}})["object_id"];
  Ok("delete_object", {{"dataset", "pins"}, {"object_id", id}});
  EXPECT_EQ(HttpClient(port()).Get("/v1/datasets/pins/objects/" + id).status, 404);
  EXPECT_EQ(OkGet("/v1/datasets/pins/objects/" + id + "?include_inactive=true")["data"]["title"], "chair");
  EXPECT_EQ(OkGet("/v1/datasets/pins/objects?include_inactive=true")["objects"].size(), 1u);
  Ok("add_mapping", {{"dataset", "boards"}, {"from", 1}, {"to", 2}});
  EXPECT_EQ(OkGet("/v1/datasets/boards/mappings/1")["entries"].size(), 1u);
  EXPECT_EQ(OkGet("/v1/datasets/boards/mappings/1/count")["count"], 1);
  EXPECT_EQ(OkGet("/v1/datasets/boards/mappings/1/objects?order=desc")["objects"].size(), 1u);
  EXPECT_EQ(OkGet("/v1/datasets/boards/mappings")["entries"].size(), 1u);
  Ok("create_report", {{"report", "visits"}, {"metrics", {"views"}}});
  EXPECT_EQ(OkGet("/v1/reports")["reports"].size(), 1u);
  EXPECT_EQ(OkGet("/v1/reports/visits")["metrics"].size(), 1u);
  EXPECT_EQ(OkGet("/v1/reports/visits/metrics?prefix=x")["metrics"].size(), 0u);
  EXPECT_TRUE(OkGet("/v1/server").contains("version"));
}

TEST_F(HttpOperationsTest, AGetThatIsNoneIsAnError) {
  const auto get = [this](const std::string& target) { return HttpClient(port()).Get(target); };
  Refused(get("/v1/datasets/rows/rows/r?versions=none"), 400, "INVALID_ARGUMENT", "versions: ");
  Refused(get("/v1/datasets/rows/rows/r?verisons=1"), 400, "INVALID_ARGUMENT", "did you mean versions");
  Refused(get("/v1/datasets/rows/rows/r?versions=1&versions=2"), 400, "INVALID_ARGUMENT",
          "versions: is given twice");
  Refused(get("/v1/datasets/rows/rows/r?%ff=1"), 400, "INVALID_ARGUMENT", "UTF-8");
  Refused(get("/v1/datasets/rows/rows/%zz"), 400, "INVALID_ARGUMENT", "%25");
  Refused(get("/v1/datasets/pins/objects/1?include_inactive=yes"), 400, "INVALID_ARGUMENT",
          "include_inactive: ");
  Refused(get("/v1/datasets/rows/row/r"), 404, "NOT_FOUND", "/v1/openapi.json");
  Refused(get("/x"), 404, "NOT_FOUND");
  Refused(get("/v1/datasets/rows/rows/"), 400, "INVALID_ARGUMENT", "row: ");
  const HttpAnswer wrong = get("/v1/put_row");
  Refused(wrong, 405, "INVALID_ARGUMENT", "POST");
  EXPECT_EQ(wrong.headers.at("allow"), "POST");
  const HttpAnswer other = HttpClient(port()).Ask("DELETE", "/v1/datasets/rows");
  Refused(other, 405, "INVALID_ARGUMENT", "GET");
  EXPECT_EQ(other.headers.at("allow"), "GET");
  Refused(HttpClient(port()).Ask("POST", "/v1/get_row?dataset=rows", "{}"), 400, "INVALID_ARGUMENT",
          "in its body");
  Refused(HttpClient(port()).Ask("GET", "/v1/datasets", "", {{"Content-Length", "5"}}), 400,
          "INVALID_ARGUMENT", "a GET has none");
}

// ---- pages ----

TEST_F(HttpOperationsTest, APageHasBoundedBytes) {
  const std::string value(3 << 20, 'v');
  for (const char* column : {"a", "b"}) {
    const CellWrite cell{column, value, 1};
    ASSERT_OK(served_->router().PutRow("rows", "large", {&cell, 1}, {}));
  }
  const Json first = Ok("get_row", {{"dataset", "rows"}, {"row", "large"}});
  EXPECT_EQ(first["items"].size(), 1u);
  const Json second = Ok("get_row", {{"dataset", "rows"}, {"row", "large"}, {"marker", first["marker"]}});
  EXPECT_EQ(second["items"].size(), 1u);
  EXPECT_TRUE(second["marker"].is_null());
}

TEST_F(HttpOperationsTest, ABatchOfReadsHasBoundedBytesAndSaysWhatIsLeft) {
  const std::string value(400'000, 'v');
  const CellWrite cell{"c", value, 1};
  Json reads = Json::array();
  for (int i = 0; i < 60; ++i) {
    ASSERT_OK(served_->router().PutRow("rows", "r" + std::to_string(i), {&cell, 1}, {}));
    reads.push_back({{"row", "r" + std::to_string(i)}});
  }
  size_t asked = 0;
  while (!reads.empty()) {
    const Json answer = Ok("get_rows", {{"dataset", "rows"}, {"rows", reads}});
    EXPECT_LT(answer.dump().size(), size_t{12} << 20);
    Json left = Json::array();
    for (size_t i = 0; i < reads.size(); ++i) {
      const Json& one = answer["results"][i];
      if (one["ok"] == true) {
        EXPECT_EQ(one["items"][0]["cells"][0]["value"], value);
      } else {
        EXPECT_EQ(one["error"]["code"], "RESOURCE_EXHAUSTED");
        left.push_back(reads[i]);
      }
    }
    ASSERT_LT(left.size(), reads.size());
    reads = std::move(left);
    ++asked;
  }
  EXPECT_GT(asked, 1u);
}

TEST_F(HttpOperationsTest, AScanThatFindsNothingIsAnsweredPageByPage) {
  // More cells than a page looks at.
  std::vector<CellWrite> cells;
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) names.push_back("c" + std::to_string(i));
  for (const std::string& name : names) cells.push_back({name, "", 1});
  for (int i = 0; i < 700; ++i) ASSERT_OK(served_->router().PutRow("rows", std::to_string(i), cells, {}));
  Json marker;
  int pages = 0;
  do {
    const Json page = Ok("scan_rows", {{"dataset", "rows"}, {"start_timestamp", 1000}, {"marker", marker}});
    EXPECT_TRUE(page["rows"].empty());
    EXPECT_NE(page["marker"], marker);
    marker = page["marker"];
    ++pages;
  } while (!marker.is_null());
  EXPECT_GT(pages, 1);
}

}  // namespace
}  // namespace kvstore
