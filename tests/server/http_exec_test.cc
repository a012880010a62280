#include <filesystem>
#include <fstream>
#include <thread>

#include "server/call/access.h"
#include "tests/server/http_fixture.h"
#include "tests/support/eventually.h"

/// Lines of JSON in and out.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::HttpAnswer;
using testing::HttpChunk;
using testing::HttpClient;
using testing::HttpHeaders;
using testing::HttpTest;
using testing::Json;

std::vector<Json> Lines(const std::string& text) {
  std::vector<Json> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(Json::parse(text.substr(at, end - at), nullptr, false));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

class HttpExecTest : public HttpTest {
 protected:
  void SetUp() override { Serve(); }

  static std::string Begin(const HttpHeaders& headers = {}) {
    std::string text = "POST /v1/exec HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    return text + "\r\n";
  }
  static std::string Put(const std::string& row) {
    return R"({"op":"put_row","dataset":"rows","row":")" + row +
           R"(","items":[{"column":"c","value":"v","timestamp":1}],"id":")" + row + "\"}\n";
  }
};

TEST_F(HttpExecTest, EachLineHasAnAnswerInItsOrder) {
  const std::string lines = Put("a") + "\n  \n" + R"({"op":"get_row","dataset":"rows","row":"a","id":[1]})" +
                            "\r\n" + R"({"op":"get_row","dataset":"none","row":"a"})" +
                            "\nnot JSON\n[]\n{}\n" + R"({"op":"get_rwo","id":7})" + "\n" +
                            R"({"op":"get_server"})" + "\n" +
                            R"({"op":"count_mapping","dataset":"boards","from":1})";
  HttpClient client(port());
  for (int i = 0; i < 2; ++i) {
    const HttpAnswer answer = client.Ask("POST", "/v1/exec", lines);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("content-type"), "application/x-ndjson");
    const std::vector<Json> answers = Lines(answer.body);
    ASSERT_EQ(answers.size(), 9u) << answer.body;
    EXPECT_EQ(answers[0], (Json{{"ok", true}, {"id", "a"}}));
    EXPECT_EQ(answers[1]["items"][0]["cells"][0]["value"], "v");
    EXPECT_EQ(answers[1]["id"], Json::array({1}));
    EXPECT_EQ(answers[2]["error"]["code"], "NOT_FOUND");
    for (const size_t wrong : {3, 4, 5, 6})
      EXPECT_EQ(answers[wrong]["error"]["code"], "INVALID_ARGUMENT") << wrong;
    EXPECT_EQ(answers[6]["id"], 7);
    EXPECT_TRUE(answers[7].contains("version"));
    EXPECT_EQ(answers[8]["count"], 0);
  }
}

TEST_F(HttpExecTest, AnAnswerComesBeforeTheNextLineIsSent) {
  HttpClient client(port());
  client.Send(Begin());
  EXPECT_EQ(client.ReadHead().status, 200) << "at once";
  std::string chunk;
  for (int i = 0; i < 20; ++i) {
    // Chunks and lines do not have to fit together.
    const std::string line = Put("row" + std::to_string(i));
    client.Send(HttpChunk(line.substr(0, 10)) + HttpChunk(line.substr(10)));
    ASSERT_TRUE(client.ReadChunk(chunk));
    EXPECT_EQ(Json::parse(chunk)["id"], "row" + std::to_string(i));
  }
  client.Send(HttpChunk(""));
  EXPECT_FALSE(client.ReadChunk(chunk));
  EXPECT_EQ(client.Get("/healthz").status, 200) << "the connection goes on";
}

TEST_F(HttpExecTest, ManyLinesWhoseAnswersAreReadLate) {
  // More bytes of answers than the system keeps for a connection.
  constexpr int kLines = 20'000;
  PutCell("r", std::string(1'000, 'v'));
  HttpClient client(port());
  // The server stops reading while nobody takes its answers, so sending needs a thread of its own.
  std::thread sends([&] {
    client.Send(Begin());
    for (int i = 0; i < kLines; i += 100) {
      std::string lines;
      for (int k = i; k < i + 100; ++k)
        lines += R"({"op":"get_row","dataset":"rows","row":"r","id":)" + std::to_string(k) + "}\n";
      client.Send(HttpChunk(lines));
    }
    client.Send(HttpChunk(""));
  });
  ASSERT_TRUE(Eventually([&] {
    return served_->Metric(
               R"(kvstore_call_seconds_count{backend="rocksdb",door="http",operation="GetRow"})") > 200;
  }));
  const std::vector<Json> answers = Lines(client.Read().body);
  sends.join();
  ASSERT_EQ(answers.size(), static_cast<size_t>(kLines));
  for (int i = 0; i < kLines; ++i) ASSERT_EQ(answers[static_cast<size_t>(i)]["id"], i);
}

TEST_F(HttpExecTest, ALineThatIsTooLongEndsTheStream) {
  HttpClient client(port());
  client.Send(Begin() + HttpChunk(Put("a")));
  std::thread sends([&] {
    const std::string piece = HttpChunk(std::string(1 << 20, 'x'));
    for (int i = 0; i < 22 && client.Send(piece); ++i) {
    }
  });
  const std::vector<Json> answers = Lines(client.Read().body);
  sends.join();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["ok"], true);
  EXPECT_NE(answers[1]["error"]["message"].get<std::string>().find("the line is longer"), std::string::npos);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(HttpExecTest, ChunksThatAreNoneEndTheStream) {
  HttpClient client(port());
  client.Send(Begin() + HttpChunk(Put("a")) + "this is no chunk\r\n");
  const std::vector<Json> answers = Lines(client.Read().body);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["ok"], true);
  EXPECT_EQ(answers[1]["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(HttpExecTest, LargeLinesAreCarriedOutToo) {
  const std::string value(3 << 20, 'v');
  const Json put = {{"op", "put_row"},
                    {"dataset", "rows"},
                    {"row", "large"},
                    {"items", {{{"column", "c"}, {"value", value}}}}};
  const Json get = {{"op", "get_row"}, {"dataset", "rows"}, {"row", "large"}};
  const std::vector<Json> answers = Lines(
      HttpClient(port()).Ask("POST", "/v1/exec", put.dump() + "\n" + get.dump() + "\n" + get.dump()).body);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["ok"], true);
  EXPECT_EQ(answers[2]["items"][0]["cells"][0]["value"], value);
}

TEST_F(HttpExecTest, WhatAStreamCannotHaveIsRefused) {
  Refused(HttpClient(port()).Ask("POST", "/v1/exec", "", {{"Kv-Request-Id", std::string(32, 'a')}}), 400,
          "INVALID_ARGUMENT", "Kv-Request-Id");
  HttpClient old(port());
  old.Send("POST /v1/exec HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
  Refused(old.Read(), 400, "INVALID_ARGUMENT", "HTTP/1.1");
  EXPECT_EQ(HttpClient(port()).Get("/v1/exec").status, 405);
}

TEST_F(HttpExecTest, AStreamThatWaitsEndsWhenTheServerStops) {
  HttpClient client(port());
  client.Send(Begin() + HttpChunk(Put("a")));
  EXPECT_EQ(client.ReadHead().status, 200);
  std::string chunk;
  ASSERT_TRUE(client.ReadChunk(chunk));
  served_->server().Drain();
  EXPECT_FALSE(client.ReadChunk(chunk)) << "the end, with its last chunk";
  EXPECT_TRUE(chunk.empty());
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(HttpExecTest, EachLineNeedsItsRightByTheListInForce) {
  const testing::TempDir dir;
  const auto write = [&](const std::string& rights) {
    std::ofstream(dir / "new") << R"({"tokens": [{"name": "web", "sha256": ")" << server::TokenDigest("web")
                               << R"(", "rights": )" << rights << "}]}";
    std::filesystem::rename(dir / "new", dir / "tokens.json");
  };
  write(R"({"rows": "write"})");
  ServerOptions options = Options();
  options.tokens = dir / "tokens.json";
  Serve(options);
  HttpClient client(port());
  client.Send(Begin({{"Authorization", "Bearer web"}}));
  EXPECT_EQ(client.ReadHead().status, 200);
  const auto ask = [&](const std::string& line) {
    client.Send(HttpChunk(line));
    std::string chunk;
    EXPECT_TRUE(client.ReadChunk(chunk));
    return Json::parse(chunk);
  };
  EXPECT_EQ(ask(Put("a"))["ok"], true);
  EXPECT_EQ(ask(R"({"op":"drop_dataset","dataset":"rows"})"
                "\n")["error"]["code"],
            "PERMISSION_DENIED");
  write(R"({"rows": "read"})");
  EXPECT_TRUE(Eventually([&] { return ask(Put("b"))["ok"] == false; }));
  EXPECT_EQ(ask(R"({"op":"get_row","dataset":"rows","row":"a"})"
                "\n")["ok"],
            true);
}

TEST_F(HttpExecTest, ABodyThatArrivesAfterARightWasWithdrawnIsNotCarriedOut) {
  const testing::TempDir dir;
  const auto write = [&](const std::string& rights) {
    std::ofstream(dir / "new") << R"({"tokens": [{"name": "web", "sha256": ")" << server::TokenDigest("web")
                               << R"(", "rights": )" << rights << "}]}";
    std::filesystem::rename(dir / "new", dir / "tokens.json");
  };
  write(R"({"rows": "write"})");
  ServerOptions options = Options();
  options.tokens = dir / "tokens.json";
  Serve(options);
  const HttpHeaders web = {{"Authorization", "Bearer web"}};
  const std::string put = R"({"dataset":"rows","row":"late","items":[{"column":"c","value":"v"}]})";
  HttpClient slow(port());
  const std::string request = testing::HttpRequest("POST", "/v1/put_row", put, web);
  slow.Send(request.substr(0, request.size() - 5));
  write(R"({"rows": "read"})");
  EXPECT_TRUE(Eventually([&] {
    return HttpClient(port()).Ask("POST", "/v1/put_row", R"({"dataset":"rows"})", web).status == 403;
  }));
  slow.Send(request.substr(request.size() - 5));
  EXPECT_EQ(slow.Read().status, 403);
  EXPECT_TRUE(served_->router().GetRow("rows", "late", {})->items.empty());
}

TEST_F(HttpExecTest, LinesOfALeavingClientAreNotCarriedOut) {
  // The end of a line never comes.
  HttpClient client(port());
  client.Send(Begin() + HttpChunk(Put("a") + Put("b").substr(0, 20)));
  EXPECT_EQ(client.ReadHead().status, 200);
  std::string chunk;
  ASSERT_TRUE(client.ReadChunk(chunk));
  client.End();
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_bytes_in_flight") == 0; }));
  EXPECT_EQ(served_->router().GetRow("rows", "a", {})->items.size(), 1u);
  EXPECT_TRUE(served_->router().GetRow("rows", "b", {})->items.empty());
}

}  // namespace
}  // namespace kvstore
