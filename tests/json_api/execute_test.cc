#include "json_api/execute.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backend_api/outcome.h"
#include "json/json.h"
#include "kvstore_api/open.h"
#include "tests/support/no_store.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::json_api {
namespace {

class ExecProtocol : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Open({.data = dir_ / "s"});
    ASSERT_OK(opened);
    store_ = *std::move(opened);
    Ok(R"({"op":"create_dataset","dataset":"rows","max_versions":0})");
    Ok(R"({"op":"create_dataset","dataset":"one","max_versions":1})");
    Ok(R"({"op":"create_dataset","dataset":"pins","shape":"objects","type":7})");
    Ok(R"({"op":"create_dataset","dataset":"boards","shape":"mappings"})");
  }

  Json Do(const std::string& line) { return Json::parse(Execute(*store_, line)); }
  Json Ok(const std::string& line) {
    Json answer = Do(line);
    EXPECT_EQ(answer["ok"], true) << line << "\n" << answer;
    return answer;
  }
  void Fails(const std::string& line, const std::string& code, const std::string& text) {
    const Json answer = Do(line);
    ASSERT_EQ(answer["ok"], false) << line;
    EXPECT_EQ(answer["error"]["code"], code) << line << "\n" << answer;
    EXPECT_NE(answer["error"]["message"].get<std::string>().find(text), std::string::npos) << line << "\n"
                                                                                           << answer;
  }
  void Invalid(const std::string& line, const std::string& text) { Fails(line, "INVALID_ARGUMENT", text); }

  const testing::TempDir dir_;
  std::unique_ptr<KVStore> store_;
};

TEST_F(ExecProtocol, TheEnvelope) {
  EXPECT_EQ(Do(R"({"op":"count_mapping","dataset":"boards","from":1,"id":{"any":[1]}})").dump(),
            R"({"count":0,"id":{"any":[1]},"ok":true})");
  EXPECT_EQ(Do(R"({"op":"nonsense","id":7})")["id"], 7);
  Invalid("", "");
  Invalid("[]", "object");
  Invalid("{", "");
  Invalid("{}", "op: ");
  Invalid(R"({"op":7})", "op: ");
  Invalid(R"({"op":"nonsense"})", "nonsense");
  Invalid(R"({"op":"get_rwo"})", "op: there is no operation 'get_rwo'; did you mean get_row");
  Invalid(R"({"op":"qurey_report"})", "did you mean query_report");
  EXPECT_EQ(Do(R"({"op":"nonsense","dataset":"rows"})")["error"]["message"],
            "op: there is no operation 'nonsense'");
  EXPECT_EQ(Do(R"({"dataset":"rows"})")["error"]["message"], "op: missing");
  EXPECT_EQ(Do(R"({"op":"get_row","dataset":"rows","rwo":"r"})")["error"]["message"],
            "row: missing; rwo: unknown field; did you mean row?");
  Invalid(R"({"op":"list_datasets","extra":1})", "extra: ");
  Invalid("{\"op\":\"\xFF\"}", "");
}

TEST_F(ExecProtocol, ObjectsAndMappingsAreScannedPageByPage) {
  std::vector<std::string> ids;
  for (int shard = 0; shard < 3; ++shard) {
    ids.push_back(Ok(R"({"op":"create_object","dataset":"pins","data":{"n":)" + std::to_string(shard) +
                     R"(},"shard":)" + std::to_string(shard) + "}")["object_id"]);
  }
  Ok(R"({"op":"delete_object","dataset":"pins","object_id":")" + ids[2] + "\"}");
  const Json first = Ok(R"({"op":"scan_objects","dataset":"pins","limit":1})");
  ASSERT_EQ(first["objects"].size(), 1u);
  EXPECT_EQ(first["objects"][0]["object_id"], ids[0]);
  EXPECT_EQ(first["objects"][0]["data"], Json::parse(R"({"n":0})"));
  EXPECT_GT(first["objects"][0]["timestamp"], 0);
  const std::string rest =
      R"({"op":"scan_objects","dataset":"pins","marker":")" + first["marker"].get<std::string>() + "\"";
  const Json second = Ok(rest + "}");
  ASSERT_EQ(second["objects"].size(), 1u);
  EXPECT_EQ(second["objects"][0]["object_id"], ids[1]);
  EXPECT_EQ(second["marker"], nullptr);
  EXPECT_EQ(Ok(rest + R"(,"include_inactive":true})")["objects"].size(), 2u);
  Ok(R"({"op":"add_mapping","dataset":"boards","from":1,"to":3,"sequence":9})");
  Ok(R"({"op":"add_mapping","dataset":"boards","from":2,"to":1,"sequence":8})");
  EXPECT_EQ(Ok(R"({"op":"scan_mappings","dataset":"boards","start_id":2})")["entries"],
            Json::parse(R"([{"from":"2","to":"1","sequence":8}])"));
  const Json page = Ok(R"({"op":"scan_mappings","dataset":"boards","limit":1})");
  EXPECT_EQ(page["entries"], Json::parse(R"([{"from":"1","to":"3","sequence":9}])"));
  EXPECT_TRUE(page["marker"].is_string());
}

TEST_F(ExecProtocol, DatasetsAreDescribed) {
  EXPECT_EQ(Ok(R"({"op":"get_dataset","dataset":"one"})")["max_versions"], 1);
  Fails(R"({"op":"get_dataset","dataset":"none"})", "NOT_FOUND", "'none'");
  Ok(R"({"op":"put_row","dataset":"rows","row":"r","items":[{"column":"a","value":"b"}]})");
  EXPECT_TRUE(Ok(R"({"op":"get_stats","dataset":"rows"})")["approximate_entries"].is_number_unsigned());
  // Each partition has the fields of a scan of it.
  size_t scanned = 0;
  const Json listed = Ok(R"({"op":"list_partitions","dataset":"rows","wanted":4})");
  for (const Json& partition : listed["partitions"]) {
    Json scan = partition;
    scan.erase("name");
    scan.update({{"op", "scan_rows"}, {"dataset", "rows"}});
    scanned += Ok(scan.dump())["rows"].size();
  }
  EXPECT_EQ(scanned, 1u);
  Invalid(R"({"op":"list_partitions","dataset":"rows","wanted":0})", "wanted: ");
}

TEST_F(ExecProtocol, AMappingIsJoinedWithItsObjects) {
  const std::string id = Ok(R"({"op":"create_object","dataset":"pins","data":{"n":1}})")["object_id"];
  Ok(R"({"op":"add_mapping","dataset":"boards","from":1,"to":")" + id + R"(","sequence":1})");
  Ok(R"({"op":"add_mapping","dataset":"boards","from":1,"to":5,"sequence":2})");
  const Json page = Ok(R"({"op":"list_objects","dataset":"boards","from":1,"order":"desc"})");
  ASSERT_EQ(page["objects"].size(), 2u);
  EXPECT_EQ(page["objects"][0]["ok"], false);
  EXPECT_EQ(page["objects"][0]["to"], "5");
  EXPECT_EQ(page["objects"][1]["data"], Json::parse(R"({"n":1})"));
  EXPECT_EQ(page["objects"][1]["sequence"], 1);
  EXPECT_EQ(page["marker"], nullptr);
  const Json first = Ok(R"({"op":"list_objects","dataset":"boards","from":1,"limit":1})");
  EXPECT_EQ(first["objects"].size(), 1u);
  EXPECT_TRUE(first["marker"].is_string());
}

TEST_F(ExecProtocol, EveryFieldIsCheckedAndNothingChanges) {
  const std::string before = Execute(*store_, R"({"op":"list_datasets"})");
  const std::string put = R"({"op":"put_row","dataset":"rows",)";
  Invalid(put + R"("items":[{"column":"a","value":"b"}]})", "row: ");
  Invalid(put + R"("row":"","items":[{"column":"a","value":"b"}]})", "row: ");
  Invalid(put + R"("row":7,"items":[{"column":"a","value":"b"}]})", "row: ");
  Invalid(put + R"("row":"r"})", "items: ");
  Invalid(put + R"("row":"r","items":{}})", "items: ");
  Invalid(put + R"("row":"r","items":[]})", "items: ");
  Invalid(put + R"("row":"r","items":[7]})", "items[0]");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b"},{"column":"a"}]})", "items[1].value: ");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b","x":1}]})", "items[0].x: ");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b","timestamp":-1}]})", "items[0].timestamp: ");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b","timestamp":9223372036854775808}]})",
          "timestamp");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b","timestamp":1.5}]})", "items[0].timestamp: ");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":{"b64":"?"}}]})", "items[0].value: ");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b"},{"column":"a","value":"c"}]})", "twice");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b"}],"condition":{}})", "condition");
  Invalid(put + R"("row":"r","items":[{"column":"a","value":"b"}],"condition":{"column":"a"}})", "condition");
  Invalid(
      put + R"("row":"r","items":[{"column":"a","value":"b"}],"condition":{"column":"a","absent":false}})",
      "condition");
  Invalid(
      put +
          R"("row":"r","items":[{"column":"a","value":"b"}],"condition":{"column":"a","absent":true,"equals":"b"}})",
      "condition");
  const std::string get = R"({"op":"get_row","dataset":"rows","row":"r",)";
  Invalid(get + R"("versions":0})", "versions: ");
  Invalid(get + R"("limit":0})", "limit: ");
  Invalid(get + R"("limit":"many"})", "limit: ");
  Invalid(get + R"("columns":[]})", "columns: ");
  Invalid(get + R"("columns":"a"})", "columns: ");
  Invalid(get + R"("start_timestamp":5,"end_timestamp":5})", "start_timestamp: ");
  Invalid(get + R"("marker":"x"})", "marker: ");
  Invalid(get + R"("marker":7})", "marker: ");
  Invalid(get + R"("after_column":7})", "after_column: ");
  Invalid(get + R"("after_column":")" + std::string(1025, 'c') + "\"}",
          "after_column: a name of 1025 bytes, the limit is 1024");
  Invalid(R"({"op":"delete_row","dataset":"rows","row":"r","columns":[]})", "columns: ");
  Invalid(R"({"op":"delete_row","dataset":"rows","row":"r","cells":[{"column":"a"}]})",
          "cells[0].timestamp: ");
  Invalid(R"({"op":"delete_row","dataset":"rows","row":"r","cells":[]})", "cells: ");
  Fails(R"({"op":"delete_row","dataset":"one","row":"r","cells":[{"column":"a","timestamp":1}]})",
        "FAILED_PRECONDITION", "max_versions");
  Invalid(R"({"op":"scan_rows","dataset":"rows","limit":0})", "limit: ");
  Invalid(R"({"op":"scan_rows","dataset":"rows","start_row":"b","end_row":"a"})", "start_row: ");
  Invalid(R"({"op":"put_rows","dataset":"rows","rows":[]})", "batch");
  Invalid(R"({"op":"get_rows","dataset":"rows","rows":[{"row":"r","items":[]}]})", "rows[0].items: ");
  Fails(R"({"op":"get_row","dataset":"none","row":"r"})", "NOT_FOUND", "'none'");
  Fails(R"({"op":"get_row","dataset":"pins","row":"r"})", "FAILED_PRECONDITION", "objects");
  Invalid(R"({"op":"create_dataset"})", "dataset: ");
  Invalid(R"({"op":"create_dataset","dataset":"a/b"})", "dataset: ");
  Invalid(R"({"op":"create_dataset","dataset":"a","shape":"tables"})", "shape: ");
  Invalid(R"({"op":"create_dataset","dataset":"a","backend":"oracle"})", "backend: ");
  Invalid(R"({"op":"create_dataset","dataset":"a","type":7})", "type: ");
  Fails(R"({"op":"create_dataset","dataset":"rows"})", "ALREADY_EXISTS", "'rows'");
  Invalid(R"({"op":"alter_dataset","dataset":"rows"})", "at least one");
  Invalid(R"({"op":"alter_dataset","dataset":"rows","max_versions":-1})", "max_versions: ");
  Fails(R"({"op":"drop_dataset","dataset":"none"})", "NOT_FOUND", "'none'");
  Fails(R"({"op":"compact","dataset":"none"})", "NOT_FOUND", "'none'");
  Invalid(R"({"op":"create_object","dataset":"pins","data":[]})", "object");
  Invalid(R"({"op":"create_object","dataset":"pins"})", "data: ");
  Invalid(R"({"op":"create_object","dataset":"pins","data":{},"shard":65536})", "shard: ");
  Invalid(R"({"op":"create_object","dataset":"pins","data":{},"near":"1","shard":1})", "near");
  Invalid(R"({"op":"get_object","dataset":"pins","object_id":"x"})", "object_id: ");
  Invalid(R"({"op":"get_object","dataset":"pins","object_id":1})", "object_id: ");
  Invalid(R"({"op":"get_objects","dataset":"pins","object_ids":7})", "object_ids: ");
  Invalid(R"({"op":"add_mapping","dataset":"boards","from":1})", "to: ");
  Invalid(R"({"op":"add_mapping","dataset":"boards","from":1,"to":"4611686018427387904"})", "to: ");
  Invalid(R"({"op":"list_mapping","dataset":"boards","from":1,"order":"up"})", "order: ");
  Invalid(R"({"op":"scan_objects","dataset":"pins","limit":0})", "limit: ");
  Invalid(R"({"op":"scan_objects","dataset":"pins","start_id":"4611686018427387904"})", "start_id: ");
  Invalid(R"({"op":"scan_objects","dataset":"pins","start_id":2,"end_id":2})", "start_id: ");
  Invalid(R"({"op":"scan_mappings","dataset":"boards","marker":"x"})", "marker: ");
  Invalid(R"({"op":"scan_mappings","dataset":"boards","include_inactive":true})", "include_inactive: ");
  Invalid(R"({"op":"list_mapping","dataset":"boards","from":1,"limit":10001})", "limit: ");
  Invalid(R"({"op":"list_mapping","dataset":"boards","from":1,"offset":1,"marker":"x"})", "offset, marker");
  EXPECT_EQ(Execute(*store_, R"({"op":"list_datasets"})"), before);
  EXPECT_TRUE(Ok(R"({"op":"scan_rows","dataset":"rows"})")["rows"].empty());
}

TEST_F(ExecProtocol, BytesOfAllKindsComeBack) {
  Ok(R"({"op":"put_row","dataset":"rows","row":{"b64":"AP8="},"items":[{"column":{"b64":"/w=="},"value":{"b64":"AAECgA=="},"timestamp":1},{"column":"","value":"","timestamp":2}]})");
  EXPECT_EQ(
      Do(R"({"op":"get_row","dataset":"rows","row":{"b64":"AP8="}})").dump(),
      R"({"items":[{"cells":[{"timestamp":2,"value":""}],"column":""},{"cells":[{"timestamp":1,"value":{"b64":"AAECgA=="}}],"column":{"b64":"/w=="}}],"marker":null,"ok":true,"row":{"b64":"AP8="}})");
}

TEST_F(ExecProtocol, APageOfARowBeginsBehindAColumn) {
  Ok(R"({"op":"put_row","dataset":"rows","row":"r","items":[{"column":"","value":"0"},{"column":"a","value":"1"},{"column":"c","value":"2"},{"column":{"b64":"/w=="},"value":"3"}]})");
  const auto columns = [](const Json& page) {
    std::vector<Json> names;
    for (const Json& item : page["items"]) names.push_back(item["column"]);
    return Json(names).dump();
  };
  const std::string get = R"({"op":"get_row","dataset":"rows","row":"r",)";
  EXPECT_EQ(columns(Ok(get + R"("after_column":"a"})")), R"(["c",{"b64":"/w=="}])");
  EXPECT_EQ(columns(Ok(get + R"("after_column":"b"})")), R"(["c",{"b64":"/w=="}])") << "there is no column b";
  EXPECT_EQ(columns(Ok(get + R"("after_column":""})")), R"(["a","c",{"b64":"/w=="}])");
  EXPECT_EQ(columns(Ok(get + R"("after_column":{"b64":"/w=="}})")), "[]");
  const Json first = Ok(get + R"("after_column":"","limit":1})");
  EXPECT_EQ(columns(first), R"(["a"])");
  // The marker of the page leads on; the column after which it began does not count any more.
  const Json rest = Ok(get + R"("after_column":"","marker":)" + first["marker"].dump() + "}");
  EXPECT_EQ(columns(rest), R"(["c",{"b64":"/w=="}])");
  const Json both = Ok(
      R"({"op":"get_rows","dataset":"rows","rows":[{"row":"r","after_column":"c"},{"row":"r","after_column":"a","limit":1}]})");
  EXPECT_EQ(columns(both["results"][0]), R"([{"b64":"/w=="}])");
  EXPECT_EQ(columns(both["results"][1]), R"(["c"])");
}

TEST_F(ExecProtocol, ScansCarryLargeRowsOverToTheNextPage) {
  const std::string value(300'000, 'v');
  for (const char* row : {"a", "b"}) {
    for (int i = 0; i < 5; ++i) {
      Ok(Json{{"op", "put_row"},
              {"dataset", "rows"},
              {"row", row},
              {"items", {{{"column", "c" + std::to_string(i)}, {"value", value}, {"timestamp", 1}}}}}
             .dump());
    }
  }
  std::map<std::string, std::vector<std::string>> columns;
  Json marker;
  int pages = 0;
  do {
    const Json page = Ok(Json{{"op", "scan_rows"}, {"dataset", "rows"}, {"marker", marker}}.dump());
    EXPECT_LT(page.dump().size(), size_t{2} << 20);
    for (const Json& row : page["rows"]) {
      for (const Json& item : row["items"]) columns[row["row"]].push_back(item["column"]);
    }
    marker = page["marker"];
    ++pages;
  } while (!marker.is_null());
  EXPECT_GT(pages, 2);
  const std::vector<std::string> all = {"c0", "c1", "c2", "c3", "c4"};
  EXPECT_EQ(columns, (std::map<std::string, std::vector<std::string>>{{"a", all}, {"b", all}}));
}

TEST_F(ExecProtocol, AScansLimitCountsRows) {
  for (const char* row : {"a", "b", "c"}) {
    Ok(std::string(R"({"op":"put_row","dataset":"rows","items":[{"column":"x","value":"v"}],"row":")") + row +
       "\"}");
  }
  const Json first = Ok(R"({"op":"scan_rows","dataset":"rows","limit":2})");
  EXPECT_EQ(first["rows"].size(), 2u);
  const Json second =
      Ok(Json{{"op", "scan_rows"}, {"dataset", "rows"}, {"limit", 1}, {"marker", first["marker"]}}.dump());
  EXPECT_EQ(second["rows"][0]["row"], "c");
  // The page ends exactly at the last row, so there is no next one.
  EXPECT_TRUE(second["marker"].is_null());
}

TEST_F(ExecProtocol, AScanTakesARangeOfTime) {
  for (const int timestamp : {10, 20, 30}) {
    Ok(Json{{"op", "put_row"},
            {"dataset", "rows"},
            {"row", "r" + std::to_string(timestamp)},
            {"items", {{{"column", "x"}, {"value", "v"}, {"timestamp", timestamp}}}}}
           .dump());
  }
  const Json page = Ok(R"({"op":"scan_rows","dataset":"rows","start_timestamp":20,"end_timestamp":30})");
  ASSERT_EQ(page["rows"].size(), 1u) << page;
  EXPECT_EQ(page["rows"][0]["row"], "r20");
}

/// A store whose writes of the row "lost" fail, and may have happened.
class LossyStore : public testing::NoStore {
 public:
  absl::StatusOr<PutResult> PutRow(std::string_view /*dataset*/, std::string_view row,
                                   std::span<const CellWrite> /*cells*/,
                                   const WriteOptions& /*options*/) override {
    const absl::Status failed = absl::UnavailableError("no answer");
    return row == "lost" ? MarkInDoubt(failed) : failed;
  }
  absl::StatusOr<std::vector<absl::StatusOr<PutResult>>> PutRows(std::string_view dataset,
                                                                 std::span<const RowWrite> writes) override {
    std::vector<absl::StatusOr<PutResult>> results;
    for (const RowWrite& write : writes)
      results.push_back(PutRow(dataset, write.row, write.cells, write.options));
    return results;
  }
};

TEST(ExecErrors, SayWhetherAWriteMayHaveHappened) {
  LossyStore store;
  const auto put = [](const std::string& row) {
    return R"("row":")" + row + R"(","items":[{"column":"a","value":"b"}])";
  };
  const std::string lost = R"({"code":"UNAVAILABLE","in_doubt":true,"message":"no answer"})";
  const std::string refused = R"({"code":"UNAVAILABLE","message":"no answer"})";
  const auto error_of = [&](const std::string& row) {
    return Json::parse(Execute(store, R"({"op":"put_row","dataset":"d",)" + put(row) + "}"))["error"].dump();
  };
  EXPECT_EQ(error_of("lost"), lost);
  EXPECT_EQ(error_of("refused"), refused);
  const Json batch = Json::parse(Execute(
      store, R"({"op":"put_rows","dataset":"d","rows":[{)" + put("refused") + "},{" + put("lost") + "}]}"));
  EXPECT_EQ(batch["results"][0]["error"].dump(), refused);
  EXPECT_EQ(batch["results"][1]["error"].dump(), lost);
}

TEST_F(ExecProtocol, ADocumentMayNestAsDeepAsTheStoreAllows) {
  const auto document = [](int depth) {
    std::string text = "{}";
    for (int i = 1; i < depth; ++i) text = R"({"a":)" + text + "}";
    return text;
  };
  const std::string create = R"({"op":"create_object","dataset":"pins","data":)";
  const std::string id = Ok(create + document(100) + "}")["object_id"];
  EXPECT_EQ(Ok(R"({"op":"get_object","dataset":"pins","object_id":)" + id + "}")["data"].dump(),
            document(100));
  Invalid(create + document(101) + "}", "data: JSON nests 101 deep, the limit is 100");
  Invalid(create + document(105) + "}", "JSON nests 106 deep");
  const std::string update =
      R"({"op":"update_object","dataset":"pins","object_id":)" + id + R"(,"merge_patch":)";
  Ok(update + document(100) + "}");
  Invalid(update + document(101) + "}", "merge_patch: data: JSON nests 101 deep, the limit is 100");
}

TEST_F(ExecProtocol, HostileLinesAreAnsweredAndNeverThrow) {
  testing::Random random(testing::Seed("exec"));
  const std::string good =
      R"({"op":"put_row","dataset":"rows","row":"r","items":[{"column":{"b64":"/w=="},"value":"v","timestamp":5}],"id":[1]})";
  for (int i = 0; i < 20'000; ++i) {
    std::string line = good;
    for (size_t n = 1 + random.Below(4); n > 0; --n) {
      const size_t at = random.Below(line.size());
      switch (random.Below(3)) {
        case 0:
          line[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          line.erase(at, 1 + random.Below(5));
          break;
        default:
          line.insert(at, line.substr(random.Below(line.size()), random.Below(20)));
      }
    }
    const Json answer = Do(line);
    ASSERT_TRUE(answer["ok"].is_boolean()) << line;
  }
}

}  // namespace
}  // namespace kvstore::json_api
