#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "base/fail_point.h"
#include "server/http/json_operations.h"
#include "tests/server/http_fixture.h"
#include "tests/server/token_list.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_dir.h"

/// Tests of what callers with different rights may do over HTTP.
namespace kvstore {
namespace {

using server::Right;
using testing::Eventually;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpHeaders;
using testing::HttpTest;
using testing::Json;
using testing::PutOf;

/// A server with callers who have one right each on everything, and some with rights on a few things. The
/// token of each is its name.
class HttpRightsTest : public HttpTest {
 protected:
  void SetUp() override {
    WriteTokens(dir_ / "tokens.json");
    Serve(TokenOptions());
  }
  /// but  The caller who is left out.
  static void WriteTokens(const std::filesystem::path& file, const std::string& but = "") {
    std::map<std::string, std::string> callers = {
        {"none", R"({"*": "none"})"},
        {"read", R"({"*": "read"})"},
        {"write", R"({"*": "write"})"},
        {"admin", R"({"*": "admin"})"},
        {"boards", R"({"boards": "read", "rows": "none"})"},
        {"visits", R"({"reports/visits": "admin"})"},
    };
    callers.erase(but);
    testing::WriteTokenList(file, callers);
  }
  ServerOptions TokenOptions() const {
    ServerOptions options = Options();
    options.tokens = dir_ / "tokens.json";
    return options;
  }
  static HttpHeaders As(const std::string& caller) { return {{"Authorization", "Bearer " + caller}}; }
  HttpAnswer Post(const std::string& caller, const std::string& operation, const Json& fields) const {
    return HttpClient(port()).Post(operation, fields, As(caller));
  }

  const testing::TempDir dir_;
};

TEST_F(HttpRightsTest, EachOperationNeedsItsRight) {
  const std::map<std::string, Right> callers = {
      {"none", Right::kNone}, {"read", Right::kRead}, {"write", Right::kWrite}, {"admin", Right::kAdmin}};
  // Fields that no operation takes, so that nothing is done by who may do it.
  const Json fields = {{"dataset", "rows"}, {"report", "r"}, {"command", "list"}, {"nonsense", 1}};
  for (const auto& [name, operation] : server::AllJsonOperations()) {
    for (const auto& [caller, right] : callers) {
      const HttpAnswer answer = Post(caller, name, fields);
      const bool may = right >= server::Traits(operation.operation).right;
      EXPECT_EQ(answer.status == 403, !may)
          << name << " " << caller << " " << answer.status << " " << answer.body;
      EXPECT_NE(answer.status, 401) << name;
    }
  }
}

TEST_F(HttpRightsTest, ACallThatWaitedIsNotCarriedOutWhenItsCallerIsUnknownByThen) {
  ServerOptions options = TokenOptions();
  options.limits.threads = 1;
  Serve(options);
  std::promise<void> reached;
  std::promise<void> release;
  std::atomic<bool> holds{true};
  SetFailPointHook([&](std::string_view point) {
    if (point != "PutRow" || !holds.exchange(false)) return;
    reached.set_value();
    release.get_future().wait();
  });
  const auto put = [this](const std::string& caller, const std::string& row) {
    return std::async(std::launch::async, [=, this] { return Post(caller, "put_row", PutOf("rows", row)); });
  };
  auto first = put("admin", "first");
  reached.get_future().wait();
  auto second = put("write", "second");
  EXPECT_TRUE(Eventually([&] { return served_->server().OpenCalls().starts_with("2 calls"); }));
  WriteTokens(dir_ / "next.json", /*but=*/"write");
  std::filesystem::rename(dir_ / "next.json", dir_ / "tokens.json");
  const Json row = {{"dataset", "rows"}, {"row", "second"}};
  EXPECT_TRUE(Eventually([&] { return Post("write", "get_row", row).status == 401; }));
  release.set_value();
  EXPECT_EQ(first.get().status, 200);
  EXPECT_EQ(second.get().status, 401);
  SetFailPointHook(nullptr);
  EXPECT_TRUE(Post("admin", "get_row", row).json()["items"].empty());
}

TEST_F(HttpRightsTest, GuessesOfTokensAreCounted) {
  const auto refused = [this] {
    const std::string text = Post("admin", "get_metrics", Json::object()).json().value("text", "");
    const std::string name =
        R"(kvstore_call_errors_total{backend="",code="UNAUTHENTICATED",door="http",operation="Calls"} )";
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
  };
  const int before = refused();
  for (const char* path : {"/v1/openapi.json", "/v1/nothing", "/x"})
    EXPECT_EQ(HttpClient(port()).Ask("GET", path, "", As("wrong")).status, 401);
  EXPECT_EQ(refused(), before + 3);
}

TEST_F(HttpRightsTest, WithoutAGoodTokenNothingIsDone) {
  for (const HttpHeaders& headers :
       std::vector<HttpHeaders>{{}, As("wrong"), As(""), {{"Authorization", "Basic YTpi"}}}) {
    for (const auto& [name, operation] : server::AllJsonOperations()) {
      HttpClient client(port());
      const HttpAnswer answer = client.Post(name, Json::object(), headers);
      if (name == "get_server") {
        EXPECT_EQ(answer.status, 200);
        continue;
      }
      Refused(answer, 401, "UNAUTHENTICATED");
      EXPECT_EQ(answer.headers.at("www-authenticate"), "Bearer");
      EXPECT_TRUE(client.IsClosed());
    }
    for (const char* target : {"/v1/datasets", "/v1/openapi.json", "/v1/nothing", "/console/nothing"})
      EXPECT_EQ(HttpClient(port()).Get(target, headers).status, 401) << target;
    EXPECT_EQ(HttpClient(port()).Ask("POST", "/v1/exec", "", headers).status, 401);
    EXPECT_EQ(HttpClient(port()).Get("/healthz", headers).status, 200);
  }
}

TEST_F(HttpRightsTest, ListsShowWhatTheCallerMayRead) {
  EXPECT_EQ(Post("read", "list_datasets", Json::object()).json()["datasets"].size(), 3u);
  const Json seen = Post("boards", "list_datasets", Json::object()).json()["datasets"];
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0]["dataset"], "boards");
  const std::string id =
      Post("write", "create_object", {{"dataset", "pins"}, {"data", Json::object()}}).json()["object_id"];
  Post("write", "add_mapping", {{"dataset", "boards"}, {"from", 1}, {"to", id}});
  const Json list = {{"dataset", "boards"}, {"from", 1}};
  EXPECT_EQ(Post("read", "list_objects", list).json()["objects"][0]["ok"], true);
  const Json hidden = Post("boards", "list_objects", list).json()["objects"][0];
  EXPECT_EQ(hidden["error"]["code"], "PERMISSION_DENIED");
  EXPECT_FALSE(hidden.contains("data"));
}

TEST_F(HttpRightsTest, ARightOnAReportIsOneOnNothingElse) {
  EXPECT_EQ(Post("visits", "create_report", {{"report", "visits"}}).status, 403) << "there is no dataset yet";
  EXPECT_EQ(Post("admin", "create_report", {{"report", "other"}, {"metrics", {"m"}}}).status, 200);
  EXPECT_EQ(Post("visits", "create_report", {{"report", "visits"}, {"metrics", {"m"}}}).status, 200);
  EXPECT_EQ(Post("visits", "list_reports", Json::object()).json()["reports"], Json::array({"visits"}));
  EXPECT_EQ(Post("read", "list_reports", Json::object()).json()["reports"].size(), 2u);
  EXPECT_EQ(Post("boards", "list_reports", Json::object()).status, 403);
  const Json query = {{"metrics", {"m"}}, {"from", 0}, {"to", 1}};
  Json mine = query;
  mine["report"] = "visits";
  Json other = query;
  other["report"] = "other";
  EXPECT_EQ(Post("visits", "query_report", mine).status, 200);
  EXPECT_EQ(Post("visits", "query_report", other).status, 403);
  EXPECT_EQ(Post("visits", "scan_rows", {{"dataset", "reports"}}).status, 403);
}

TEST_F(HttpRightsTest, NobodyGetsTheAnswerToAWriteOfAnother) {
  const auto put = [this](const std::string& caller) {
    HttpHeaders headers = As(caller);
    headers["Kv-Request-Id"] = "00112233-4455-6677-8899-aabbccddeeff";
    return HttpClient(port()).Post("put_row", PutOf("rows", "r"), headers).json();
  };
  const Json first = put("write");
  EXPECT_NE(put("admin")["timestamp"], first["timestamp"]);
  EXPECT_EQ(put("write")["timestamp"], first["timestamp"]);
}

}  // namespace
}  // namespace kvstore
