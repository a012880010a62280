#include "console/console.h"

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "console/embedded.h"
#include "tests/server/http_fixture.h"
#include "tests/server/token_list.h"
#include "tests/support/temp_dir.h"

/// The console's files through the door: who gets them, and what browsers are told about them. What the pages
/// do is in tests/console.
namespace kvstore {
namespace {

using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpHeaders;
using testing::HttpTest;
using testing::Json;

class ConsoleTest : public HttpTest {
 protected:
  HttpAnswer Ask(const std::string& method, const std::string& target,
                 const HttpHeaders& headers = {}) const {
    return HttpClient(port()).Ask(method, target, "", headers);
  }
  HttpAnswer Get(const std::string& target, const HttpHeaders& headers = {}) const {
    return Ask("GET", target, headers);
  }
  /// A server that has one caller, "ops".
  void ServeWithTokens() {
    testing::WriteTokenList(dir_ / "tokens.json", {{"ops", R"({"*": "admin"})"}});
    ServerOptions options = Options();
    options.tokens = dir_ / "tokens.json";
    Serve(options);
  }

  const testing::TempDir dir_;
};

TEST_F(ConsoleTest, APageMayLoadNothingFromElsewhere) {
  Serve();
  const HttpAnswer page = Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(
      page.headers.at("content-security-policy"),
      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'");
  // Nothing that this policy would refuse is in the page.
  EXPECT_EQ(page.body.find("<style"), std::string::npos);
  EXPECT_EQ(page.body.find(" style="), std::string::npos);
  EXPECT_FALSE(std::regex_search(page.body, std::regex("<script[^>]*>[^<]")));
  EXPECT_FALSE(std::regex_search(page.body, std::regex("https?://")));
}

TEST_F(ConsoleTest, AllThatThePageNamesIsThere) {
  Serve();
  // From the page to what it loads, and from modules to those that they import.
  std::set<std::string> seen;
  std::vector<std::string> next = {"/"};
  while (!next.empty()) {
    const std::string target = next.back();
    next.pop_back();
    if (!seen.insert(target).second) continue;
    const HttpAnswer answer = Get(target);
    ASSERT_EQ(answer.status, 200) << target;
    const std::string folder = target.substr(0, target.rfind('/') + 1);
    const std::regex names(R"re((?:src|href)="([^"#]+)"|from '([^']+)')re");
    for (std::sregex_iterator found(answer.body.begin(), answer.body.end(), names), end; found != end;
         ++found) {
      std::string name = (*found)[1].matched ? (*found)[1] : (*found)[2];
      std::string from = folder;
      if (target.find("/vendor/") != std::string::npos) continue;
      if (name.starts_with("./")) name = name.substr(2);
      if (name.starts_with("../")) {
        name = name.substr(3);
        from = from.substr(0, from.rfind('/', from.size() - 2) + 1);
      }
      next.push_back(from + name);
    }
  }
  EXPECT_GT(seen.size(), 15u);
  // The console's files use nothing that hostile data could misuse.
  for (const std::string& target : seen) {
    if (target.find("/vendor/") != std::string::npos) continue;
    const std::string body = Get(target).body;
    for (const char* word :
         {"innerHTML", "eval(", "document.write", "dangerouslySetInnerHTML", "localStorage"})
      EXPECT_EQ(body.find(word), std::string::npos) << target << " " << word;
  }
}

TEST_F(ConsoleTest, AllTogetherIsLessThan80KilobytesOnTheWire) {
  Serve();
  size_t bytes = 0;
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (file.name.find("LICENSE") != std::string_view::npos) continue;  // no page loads them
    const bool is_page = file.name == "index.html";
    const HttpAnswer answer =
        Get(is_page ? "/" : "/console/" + std::string(file.name), {{"Accept-Encoding", "br, gzip;q=0.8"}});
    ASSERT_EQ(answer.status, 200) << file.name;
    EXPECT_EQ(answer.headers.at("content-encoding"), "gzip");
    EXPECT_EQ(answer.body.substr(0, 2), "\x1f\x8b");
    EXPECT_EQ(answer.body, *FindConsoleFile(file.name)->gzip);
    bytes += answer.body.size();
  }
  EXPECT_LT(bytes, 80'000u);
}

TEST_F(ConsoleTest, AFileIsCompressedForThoseWhoTakeIt) {
  Serve();
  for (const char* accepted : {"", "br", "gzip;q=0", "gzip;q=0.000", "gzipx", "identity"}) {
    const HttpAnswer answer = Get("/console/app.js", {{"Accept-Encoding", accepted}});
    EXPECT_FALSE(answer.headers.contains("content-encoding")) << accepted;
    EXPECT_EQ(answer.body, *FindConsoleFile("app.js")->bytes);
    EXPECT_EQ(answer.headers.at("vary"), "Accept-Encoding");
  }
  for (const char* accepted : {"gzip", "deflate, GZIP;q=0.001", "br;q=1.0, gzip;q=0.8, *;q=0.1"})
    EXPECT_TRUE(Get("/console/app.js", {{"Accept-Encoding", accepted}}).headers.contains("content-encoding"))
        << accepted;
}

TEST_F(ConsoleTest, AFileIsSentOnceAndThenOnlyAskedFor) {
  Serve();
  HttpClient client(port());
  const HttpAnswer first = client.Get("/console/app.js");
  EXPECT_EQ(first.headers.at("cache-control"), "no-cache");
  const HttpAnswer again = client.Get("/console/app.js", {{"If-None-Match", first.headers.at("etag")}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.headers.at("etag"), first.headers.at("etag"));
  EXPECT_FALSE(again.headers.contains("content-length"));
  EXPECT_EQ(client.Get("/console/app.js", {{"If-None-Match", "*"}}).status, 304);
  EXPECT_EQ(client.Get("/console/app.js", {{"If-None-Match", "\"other\""}}).status, 200);
  // Answers with data are kept by nobody.
  EXPECT_EQ(client.Get("/v1/datasets").headers.at("cache-control"), "no-store");
}

TEST_F(ConsoleTest, OnlyGetAndHead) {
  Serve();
  EXPECT_EQ(Ask("POST", "/").status, 405);
  EXPECT_EQ(Ask("POST", "/console/app.js").status, 405);
  HttpClient client(port());
  client.Send(testing::HttpRequest("HEAD", "/"));
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_EQ(client.Get("/healthz").status, 200);  // no body stood in between
  EXPECT_EQ(Get("/console/nothing.js").status, 404);
  EXPECT_EQ(Get("/console/").status, 404);
  EXPECT_EQ(Get("/console").status, 404);
  EXPECT_EQ(Get("/console/index.html").status, 404) << "what it names is relative to /";
  EXPECT_EQ(Get("/console/..%2Fapp.js").status, 404);
}

TEST_F(ConsoleTest, StrangersGetThePageAndNothingElse) {
  ServeWithTokens();
  EXPECT_EQ(Get("/").status, 200);
  EXPECT_EQ(Get("/console/app.js").status, 200);
  EXPECT_EQ(Get("/console/nothing.js").status, 401);
  EXPECT_EQ(Get("/v1/datasets").status, 401);
  const Json stranger = Get("/v1/server").json();
  EXPECT_FALSE(stranger.contains("caller"));
  EXPECT_FALSE(stranger.contains("rights"));
  EXPECT_FALSE(stranger.contains("parts"));
}

TEST_F(ConsoleTest, ItsOwnPageMayCallAndOthersMayNot) {
  Serve();
  const std::string host = "localhost:" + std::to_string(port());
  const auto call = [&](const std::string& origin) {
    return HttpClient(port())
        .Post("list_datasets", Json::object(), {{"Host", host}, {"Origin", origin}})
        .status;
  };
  EXPECT_EQ(call("http://" + host), 200);
  EXPECT_EQ(call("https://" + host), 403);
  EXPECT_EQ(call("http://localhost"), 403);
  EXPECT_EQ(call("http://" + host + ".example"), 403);
  EXPECT_EQ(call("http://app.example"), 403);
  EXPECT_EQ(call("null"), 403);
  // A name that leads here is not this server, whatever page asks.
  EXPECT_EQ(
      HttpClient(port())
          .Post("list_datasets", Json::object(), {{"Host", "app.example"}, {"Origin", "http://app.example"}})
          .status,
      403);
  EXPECT_EQ(Get("/", {{"Host", "app.example"}}).status, 403);
}

TEST_F(ConsoleTest, APageOfANameThatLeadsToAnOpenServerMayNotCall) {
  // Other machines reach this one, and everybody may do everything.
  ServerOptions options = Options();
  options.http_api = "0.0.0.0:0";
  options.insecure = true;
  Serve(options);
  const auto call = [&](const std::string& host) {
    return HttpClient(port())
        .Post("list_datasets", Json::object(), {{"Host", host}, {"Origin", "http://" + host}})
        .status;
  };
  EXPECT_EQ(call("rebound.example"), 403);
  EXPECT_EQ(call("127.0.0.1:" + std::to_string(port())), 200);
}

TEST_F(ConsoleTest, ALinkFromAnotherSiteLeadsToThePageAndToNothingElse) {
  Serve();
  const HttpHeaders link = {{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Mode", "navigate"}};
  EXPECT_EQ(Get("/", link).status, 200);
  EXPECT_EQ(Get("/v1/datasets", link).status, 403);
}

}  // namespace
}  // namespace kvstore
