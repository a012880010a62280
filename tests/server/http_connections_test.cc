#include <fstream>

#include "server/call/access.h"
#include "tests/hostile/tls_connection.h"
#include "tests/server/http_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"

/// Connections: how many requests they carry, how these come, who may open them, and what web pages may do.
namespace kvstore {
namespace {

using testing::Authority;
using testing::BasicHttpClient;
using testing::Eventually;
using testing::HttpAnswer;
using testing::HttpChunk;
using testing::HttpClient;
using testing::HttpHeaders;
using testing::HttpRequest;
using testing::HttpTest;
using testing::Json;
using testing::TlsConnection;

using TlsClient = BasicHttpClient<TlsConnection>;

std::string PutOf(const std::string& row) {
  return R"({"dataset":"rows","row":")" + row + R"(","items":[{"column":"c","value":"v","timestamp":1}]})";
}
const char* const kGetRow = "/v1/datasets/rows/rows/r";

// ---- one request after the other ----

TEST_F(HttpTest, AConnectionCarriesManyRequests) {
  Serve();
  HttpClient client(port());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.Ask("POST", "/v1/put_row", PutOf("r")).status, 200);
    const HttpAnswer answer = client.Get(kGetRow);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
    // An error does not end it, unless the server does not know where the next request begins.
    EXPECT_EQ(client.Get("/v1/datasets/none").status, 404);
    EXPECT_EQ(client.Ask("POST", "/v1/get_row", "{}").status, 400);
  }
}

TEST_F(HttpTest, RequestsThatAreSentTogetherAreAnsweredInTheirOrder) {
  Serve();
  HttpClient client(port());
  std::string together;
  constexpr int kRequests = 200;
  for (int i = 0; i < kRequests; ++i) {
    const std::string row = "row" + std::to_string(i);
    together += HttpRequest("POST", "/v1/put_row", PutOf(row));
    together += HttpRequest("GET", "/v1/datasets/rows/rows/" + row);
    if (i % 10 == 0) together += "\r\n";  // as some clients send after a body
  }
  client.Send(together);
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_EQ(client.Read().status, 200);
    const HttpAnswer read = client.Read();
    ASSERT_EQ(read.status, 200) << i;
    EXPECT_EQ(read.json()["row"], "row" + std::to_string(i));
    EXPECT_EQ(read.json()["items"].size(), 1u);
  }
}

TEST_F(HttpTest, AClientThatEndsItsSideGetsTheAnswersToWhatItSent) {
  Serve();
  HttpClient client(port());
  client.Send(HttpRequest("GET", "/healthz") + HttpRequest("GET", "/v1/server"));
  client.connection().EndSending();
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(HttpTest, AConnectionIsClosedWhenItsClientWantsThat) {
  Serve();
  HttpClient client(port());
  const HttpAnswer answer = client.Get("/v1/server", {{"Connection", "close"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.IsClosed());
  HttpClient old(port());
  old.Send("GET /v1/server HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.Read().status, 200);
  EXPECT_TRUE(old.IsClosed());
  HttpClient kept(port());
  for (int i = 0; i < 2; ++i) {
    kept.Send("GET /v1/server HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(kept.Read().status, 200);
  }
}

TEST_F(HttpTest, EveryAnswerSaysWhoGaveItAndMustNotBeKept) {
  Serve();
  const HttpAnswer answer = HttpClient(port()).Get("/v1/datasets");
  EXPECT_EQ(answer.headers.at("content-type"), "application/json");
  EXPECT_EQ(answer.headers.at("cache-control"), "no-store");
  EXPECT_EQ(answer.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(answer.headers.at("kv-instance").size(), 32u);
  EXPECT_EQ(answer.headers.at("date").size(), std::string("Sun, 06 Nov 1994 08:49:37 GMT").size());
  EXPECT_EQ(answer.body.back(), '\n');
}

TEST_F(HttpTest, HealthIsTold) {
  Serve();
  HttpClient client(port());
  EXPECT_EQ(client.Get("/healthz").body, "ok\n");
  EXPECT_EQ(client.Get("/readyz").status, 200);
  EXPECT_EQ(client.Ask("POST", "/healthz").status, 405);
}

TEST_F(HttpTest, WhoeverAsksForAHeadGetsNoBody) {
  Serve();
  HttpClient client(port());
  const auto head_of = [&](const std::string& target) {
    client.Send("HEAD " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return client.ReadHead();
  };
  EXPECT_EQ(head_of("/healthz").status, 200);
  EXPECT_EQ(head_of("/readyz").status, 200);
  EXPECT_EQ(head_of("/v1/datasets").status, 405);
  EXPECT_EQ(head_of("/nothing").status, 404);
  // The next answer is that to the next request.
  EXPECT_EQ(client.Get("/healthz").body, "ok\n");
}

TEST_F(HttpTest, ABodyOfAnOperationForAnybodyIsParsedWithoutACaller) {
  Serve();
  HttpClient client(port());
  const HttpAnswer answer = client.Ask("POST", "/v1/get_server", "[" + std::string(479, ','));
  Refused(answer, 400, "INVALID_ARGUMENT", "more than 16 values");
  EXPECT_EQ(client.Ask("POST", "/v1/get_server", "{}").status, 200);
}

// ---- bodies ----

TEST_F(HttpTest, ABodyMayComeInChunks) {
  Serve();
  HttpClient client(port());
  const std::string body = PutOf("r");
  const std::string head =
      "POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  client.Send(head + HttpChunk(body.substr(0, 7)) + HttpChunk(body.substr(7)) + HttpChunk(""));
  EXPECT_EQ(client.Read().status, 200);
  // Byte by byte, with an extension and a trailer.
  std::string slowly = head;
  for (const char c : body) slowly += "1;name=value\r\n" + std::string(1, c) + "\r\n";
  slowly += "0\r\nAuthorization: Bearer late\r\n\r\n";
  for (const char c : slowly) client.Send(std::string(1, c));
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Get(kGetRow).json()["items"].size(), 1u);
}

TEST_F(HttpTest, AClientThatWaitsToSendItsBodyIsAskedForIt) {
  Serve();
  HttpClient client(port());
  const std::string body = PutOf("r");
  client.Send("POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.ReadHead().status, 100);
  client.Send(body);
  EXPECT_EQ(client.Read().status, 200);
  // One whose request is refused is told so instead.
  client.Send(
      "POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(client.Read().status, 404);
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(HttpTest, TheLargestBodyPassesAndALargerOneIsNotRead) {
  Serve();
  // The largest put, each byte of it in base64.
  const std::string value(size_t{4} << 20, '\xff');
  const CellWrite cell{"c", value, 1};
  ASSERT_OK(served_->router().PutRow("rows", "large", {&cell, 1}, {}));
  const Json read = OkGet("/v1/datasets/rows/rows/large");
  const Json put = {
      {"dataset", "rows"},
      {"row", "copy"},
      {"items", {{{"column", "c"}, {"value", read["items"][0]["cells"][0]["value"]}, {"timestamp", 1}}}}};
  EXPECT_EQ(HttpClient(port()).Post("put_row", put).status, 200);
  EXPECT_EQ(served_->router().GetRow("rows", "copy", {})->items[0].cells[0].value, value);

  HttpClient said(port());
  said.Send("POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20971521\r\n\r\n");
  Refused(said.Read(), 413, "INVALID_ARGUMENT", "20971520");
  EXPECT_TRUE(said.IsClosed());
  HttpClient chunked(port());
  chunked.Send("POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string piece = HttpChunk(std::string(size_t{1} << 20, ' '));
  for (int i = 0; i < 21; ++i) chunked.Send(piece);
  Refused(chunked.Read(), 413, "INVALID_ARGUMENT", "20971520");
}

// ---- heads ----

TEST_F(HttpTest, WhatIsNoRequestIsRefusedAndEndsTheConnection) {
  Serve();
  const std::vector<std::pair<std::string, int>> requests = {
      {"GET / HTTP/2.0\r\n\r\n", 400},
      {"nonsense\r\n\r\n", 400},
      {"GET /v1/server\r\n\r\n", 400},
      {"GET /v1/server HTTP/1.1\r\n\r\n", 400},  // no Host
      {"GET /v1/server HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET /v1/server HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
       400},
      {"GET /v1/server HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nOrigin: http://b\r\n\r\n", 400},
      {"GET /v1/server HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: "
       "chunked\r\n\r\n",
       400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n",
       400},
      {"GET v1/server HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST /v1/put_row HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", 400},
      {"GET /v1/server HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tb\r\n\r\n", 400},
      {"GET /v1/server HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", 431},
  };
  for (const auto& [request, status] : requests) {
    HttpClient client(port());
    client.Send(request);
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, status) << request.substr(0, 200);
    EXPECT_EQ(answer.code(), "INVALID_ARGUMENT") << request.substr(0, 200);
    EXPECT_TRUE(client.IsClosed()) << request.substr(0, 200);
  }
  EXPECT_EQ(HttpClient(port()).Get("http://localhost/v1/server").status, 200) << "as a proxy asks";
}

// ---- TLS ----

class HttpTlsTest : public HttpTest {
 protected:
  ServerOptions WithTls() {
    ServerOptions options = Options();
    options.tls.cert = server_.cert;
    options.tls.key = server_.key;
    return options;
  }

  const testing::TempDir dir_;
  Authority authority_{dir_.path(), "authority"};
  const Authority::Files server_ = authority_.Issue("server");
};

TEST_F(HttpTlsTest, RequestsAreEncrypted) {
  Serve(WithTls());
  TlsClient client(port());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.Ask("POST", "/v1/put_row", PutOf("r")).status, 200);
    EXPECT_EQ(client.Get(kGetRow).json()["items"].size(), 1u);
  }
  EXPECT_EQ(client.Get("/v1/server", {{"Connection", "close"}}).status, 200);
  EXPECT_TRUE(client.IsClosed());
  // Plain text gets no answer.
  HttpClient plain(port());
  plain.Send(HttpRequest("GET", "/healthz"));
  EXPECT_EQ(plain.Read().status, 0);
}

TEST_F(HttpTlsTest, LargeAnswersAndStreamsAreEncryptedToo) {
  Serve(WithTls());
  const std::string value(size_t{3} << 20, 'v');
  const CellWrite cell{"c", value, 1};
  ASSERT_OK(served_->router().PutRow("rows", "r", {&cell, 1}, {}));
  TlsClient client(port());
  EXPECT_EQ(client.Get(kGetRow).json()["items"][0]["cells"][0]["value"], value);
  const HttpAnswer lines = client.Ask("POST", "/v1/exec", R"({"op":"get_row","dataset":"rows","row":"r"})");
  EXPECT_EQ(lines.status, 200);
  EXPECT_GT(lines.body.size(), value.size());
}

TEST_F(HttpTlsTest, AClientsCertificateSaysWhoItIs) {
  std::ofstream(dir_ / "tokens.json") << R"({"tokens": [
      {"name": "ops", "common_name": "ops.example.com", "rights": {"*": "admin"}},
      {"name": "web", "sha256": ")" << server::TokenDigest("web")
                                      << R"(", "rights": {"*": "read"}}]})";
  ServerOptions options = WithTls();
  options.tls.client_ca = authority_.file();
  options.tokens = dir_ / "tokens.json";
  Serve(options);
  const auto status = [this](const Authority::Files& certificate, const HttpHeaders& headers = {}) {
    TlsClient client(port(), certificate.cert, certificate.key);
    return client.Post("put_row", Json::parse(PutOf("r")), headers).status;
  };
  EXPECT_EQ(status(authority_.Issue("ops.example.com")), 200);
  EXPECT_EQ(status(authority_.Issue("nobody.example.com")), 401);
  // A token counts more than the certificate.
  EXPECT_EQ(status(authority_.Issue("ops.example.com"), {{"Authorization", "Bearer web"}}), 403);
  Authority foreign(dir_.path(), "foreign");
  EXPECT_EQ(status(foreign.Issue("ops.example.com")), 0);
  EXPECT_EQ(status(authority_.Issue("ops.example.com", /*days=*/0)), 0);
  EXPECT_EQ(TlsClient(port()).Get("/healthz").status, 0) << "without a certificate";
}

TEST_F(HttpTlsTest, CertificatesThatCannotBeUsedAreNamed) {
  Serve();
  ServerOptions options = WithTls();
  options.listen = {"127.0.0.1:0"};
  options.tls.key = authority_.Issue("other").key;
  const auto started = Server::Start(served_->router(), options);
  EXPECT_FALSE(started.ok());
}

// ---- web pages ----

TEST_F(HttpTest, PagesMayDoNothingUnlessTheirOriginIsNamed) {
  Serve();
  for (const char* origin : {"https://evil.example", "null", "http://127.0.0.1:1"}) {
    HttpClient client(port());
    const HttpAnswer answer = client.Ask("POST", "/v1/put_row", PutOf("r"), {{"Origin", origin}});
    Refused(answer, 403, "PERMISSION_DENIED", "http_origins");
    EXPECT_FALSE(answer.headers.contains("access-control-allow-origin"));
    const HttpAnswer preflight = HttpClient(port()).Ask(
        "OPTIONS", "/v1/put_row", "", {{"Origin", origin}, {"Access-Control-Request-Method", "POST"}});
    EXPECT_EQ(preflight.status, 403);
  }
  EXPECT_TRUE(served_->router().GetRow("rows", "r", {})->items.empty());
  EXPECT_EQ(HttpClient(port()).Ask("OPTIONS", "/v1/put_row").status, 405);
}

TEST_F(HttpTest, PagesOfOtherSitesMayNotAskWithoutAnOrigin) {
  // As a browser asks for what it takes for an image, a script or a page in a frame.
  Serve();
  for (const char* site : {"cross-site", "same-site"}) {
    Refused(HttpClient(port()).Get("/v1/datasets", {{"Sec-Fetch-Site", site}}), 403, "PERMISSION_DENIED",
            "Sec-Fetch-Site");
  }
  for (const char* site : {"same-origin", "none"})
    EXPECT_EQ(HttpClient(port()).Get("/v1/datasets", {{"Sec-Fetch-Site", site}}).status, 200);
}

TEST_F(HttpTest, FiguresAreNotForPagesThatTakeANameOfThisMachine) {
  ServerOptions options = Options();
  options.http = "127.0.0.1:0";
  Serve(options);
  const auto figures_of = [&](const std::string& host) {
    HttpClient client(static_cast<uint16_t>(served_->server().http_port()));
    client.Send("GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.ReadHead().status;
  };
  EXPECT_EQ(figures_of("evil.example"), 403);
  EXPECT_EQ(figures_of("localhost:9000"), 200);
  EXPECT_EQ(figures_of("127.0.0.1"), 200);
}

TEST_F(HttpTest, PagesOfANamedOriginMayAsk) {
  ServerOptions options = Options();
  options.http_origins = {"https://app.example"};
  Serve(options);
  HttpClient client(port());
  const HttpHeaders page = {{"Origin", "https://app.example"}};
  HttpHeaders asks = page;
  asks["Access-Control-Request-Method"] = "POST";
  const HttpAnswer preflight = client.Ask("OPTIONS", "/v1/put_row", "", asks);
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.at("access-control-allow-origin"), "https://app.example");
  EXPECT_NE(preflight.headers.at("access-control-allow-headers").find("Authorization"), std::string::npos);
  const HttpAnswer put = client.Ask("POST", "/v1/put_row", PutOf("r"), page);
  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(put.headers.at("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(put.headers.at("vary"), "Origin");
  const HttpAnswer lines = client.Ask("POST", "/v1/exec", "", page);
  EXPECT_EQ(lines.headers.at("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(client.Get(kGetRow, {{"Origin", "https://app.example.evil"}}).status, 403);
  EXPECT_FALSE(client.Get(kGetRow).headers.contains("access-control-allow-origin"));
}

TEST_F(HttpTest, AnyOriginMayBeNamed) {
  ServerOptions options = Options();
  options.http_origins = {"*"};
  Serve(options);
  const HttpAnswer answer = HttpClient(port()).Get("/v1/server", {{"Origin", "https://any.example"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "https://any.example");
}

TEST_F(HttpTest, AServerWithoutTokensAnswersToItsOwnNamesOnly) {
  Serve();
  // A page whose name leads here, which browsers take for one of this server.
  Refused(HttpClient(port()).Get("/v1/datasets", {{"Host", "evil.example:80"}}), 403, "PERMISSION_DENIED",
          "Host");
  for (const std::string host : {"localhost", "127.0.0.1", "[::1]"}) {
    for (const std::string port_too : {"", ":7402"})
      EXPECT_EQ(HttpClient(port()).Get("/v1/datasets", {{"Host", host + port_too}}).status, 200) << host;
  }
  const testing::TempDir dir;
  std::ofstream(dir / "tokens.json") << R"({"tokens": [{"name": "web", "sha256": ")"
                                     << server::TokenDigest("web") << R"(", "rights": {"*": "read"}}]})";
  ServerOptions options = Options();
  options.tokens = dir / "tokens.json";
  Serve(options);
  EXPECT_EQ(HttpClient(port())
                .Get("/v1/datasets", {{"Host", "kv.example"}, {"Authorization", "Bearer web"}})
                .status,
            200);
}

}  // namespace
}  // namespace kvstore
