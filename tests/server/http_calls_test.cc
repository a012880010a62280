#include <atomic>
#include <future>
#include <thread>

#include "backend_api/outcome.h"
#include "tests/server/gated_servers.h"
#include "tests/server/http_fixture.h"
#include "tests/support/eventually.h"

/// Tests of calls over HTTP: their caller, rights and limits, and how often a call is carried out.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpHeaders;
using testing::HttpTest;
using testing::Json;
using testing::Migrates;
using testing::PutOf;

// ---- what the backend says ----

/// A server whose backend does what a test says, with the datasets "migrating" and "other".
class HttpGatedTest : public testing::GatedServersTest {
 protected:
  void SetUp() override { ServeHttp(testing::TestServerOptions()); }
  void ServeHttp(ServerOptions options) {
    options.http_api = "127.0.0.1:0";
    Serve(options);
  }
  HttpClient Client() const { return HttpClient(static_cast<uint16_t>(server_->http_api_port())); }
  HttpAnswer Post(const std::string& operation, const Json& fields, const HttpHeaders& headers = {}) const {
    return Client().Post(operation, fields, headers);
  }
  /// Returns a figure of the server; -1 if there is none.
  double Metric(const std::string& name) const {
    const std::string text = Post("get_metrics", Json::object()).json().value("text", "");
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  double Held() const { return Metric("kvstore_calls_held"); }
};

TEST_F(HttpGatedTest, EachCodeHasItsStatus) {
  const std::vector<std::tuple<absl::Status, int, std::string>> ends = {
      {absl::InvalidArgumentError("x"), 400, "INVALID_ARGUMENT"},
      {absl::NotFoundError("x"), 404, "NOT_FOUND"},
      {absl::AlreadyExistsError("x"), 409, "ALREADY_EXISTS"},
      {absl::FailedPreconditionError("x"), 412, "FAILED_PRECONDITION"},
      {absl::ResourceExhaustedError("x"), 429, "RESOURCE_EXHAUSTED"},
      {absl::DataLossError("x"), 500, "DATA_LOSS"},
      {absl::InternalError("x"), 500, "INTERNAL"},
      {absl::UnavailableError("x"), 503, "UNAVAILABLE"},
      {absl::DeadlineExceededError("x"), 504, "DEADLINE_EXCEEDED"},
  };
  for (const auto& [end, status, code] : ends) {
    gate_->Set([end = end](std::string_view, std::string_view) { return end; });
    const HttpAnswer answer = Post("put_row", PutOf("other", "r"));
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.code(), code);
    EXPECT_EQ(answer.message(), "x");
    EXPECT_EQ(answer.headers.contains("retry-after"), status == 429 || status == 503) << code;
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive") << "an error is an answer like others";
  }
}

TEST_F(HttpGatedTest, NobodyIsAskedToRetryAWriteThatMayHaveHappened) {
  gate_->Set([](std::string_view, std::string_view) { return MarkInDoubt(absl::UnavailableError("lost")); });
  const HttpAnswer answer = Post("put_row", PutOf("other", "r"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["error"]["in_doubt"], true);
  EXPECT_FALSE(answer.headers.contains("retry-after"));
}

// ---- migrations, deadlines, clients that leave ----

TEST_F(HttpGatedTest, ACallOnADatasetThatMigratesWaitsAndGoesOn) {
  gate_->Set(Migrates("migrating"));
  const std::vector<std::pair<std::string, Json>> calls = {
      {"put_row", PutOf("migrating", "a")},
      {"get_row", {{"dataset", "migrating"}, {"row", "a"}}},
      {"get_rows", {{"dataset", "migrating"}, {"rows", {{{"row", "a"}}, {{"row", "b"}}}}}},
      {"put_rows",
       {{"dataset", "migrating"},
        {"rows", {{{"row", "b"}, {"items", {{{"column", "c"}, {"value", "v"}}}}}}}}},
      {"delete_rows", {{"dataset", "migrating"}, {"rows", {{{"row", "c"}}}}}},
      {"scan_rows", {{"dataset", "migrating"}}},
  };
  std::vector<std::future<HttpAnswer>> answers;
  for (const auto& call : calls)
    answers.push_back(std::async(std::launch::async, [&] { return Post(call.first, call.second); }));
  ASSERT_TRUE(Eventually([&] { return Held() == static_cast<double>(calls.size()); }));
  EXPECT_EQ(Post("put_row", PutOf("other", "r")).status, 200) << "others go on";
  gate_->Set(nullptr);
  for (auto& answer : answers) {
    const HttpAnswer got = answer.get();
    EXPECT_EQ(got.status, 200) << got.body;
    EXPECT_EQ(got.body.find("migrates"), std::string::npos) << got.body;
  }
}

TEST_F(HttpGatedTest, WhatWasDoneOfABatchIsNotDoneTwice) {
  gate_->Set([](std::string_view, std::string_view row) {
    return row == "late" ? WritesHeldError("it migrates") : absl::OkStatus();
  });
  Json rows = Json::array();
  for (const auto& [row, value] : std::vector<std::pair<std::string, std::string>>{
           {"early", "1"}, {"late", "1"}, {"early", "2"}, {"late", "2"}}) {
    rows.push_back({{"row", row}, {"items", {{{"column", "c"}, {"value", value}}}}});
  }
  auto answer = std::async(std::launch::async, [&] {
    return Post("put_rows", {{"dataset", "migrating"}, {"rows", rows}});
  });
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() > 5; }));
  EXPECT_EQ(gate_->Done("migrating", "early"), (std::vector<std::string>{"1", "2"}));
  gate_->Set(nullptr);
  const Json results = answer.get().json()["results"];
  ASSERT_EQ(results.size(), 4u);
  for (const Json& result : results) EXPECT_EQ(result["ok"], true) << result;
  EXPECT_EQ(gate_->Done("migrating", "early"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(gate_->Done("migrating", "late"), (std::vector<std::string>{"1", "2"}));
}

TEST_F(HttpGatedTest, ACallEndsWithItsDeadline) {
  gate_->Set(Migrates("migrating"));
  const HttpAnswer late = Post("put_row", PutOf("migrating", "r"), {{"Kv-Timeout-Ms", "2000"}});
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(late.code(), "DEADLINE_EXCEEDED");
  EXPECT_NE(late.message().find("it waited: "), std::string::npos) << late.message();
  for (const char* none : {"0", "-1", "1.5", "soon", "86400001", "99999999999999999999"}) {
    const HttpAnswer answer = Post("put_row", PutOf("other", "r"), {{"Kv-Timeout-Ms", none}});
    EXPECT_EQ(answer.status, 400) << none;
    EXPECT_NE(answer.message().find("Kv-Timeout-Ms"), std::string::npos);
  }
  EXPECT_TRUE(gate_->Done("other", "r").empty());
}

TEST_F(HttpGatedTest, ACallEndsWhenItsClientIsGone) {
  gate_->Set(Migrates("migrating"));
  HttpClient leaves = Client();
  leaves.Send(testing::HttpRequest("POST", "/v1/put_row", PutOf("migrating", "r").dump()));
  ASSERT_TRUE(Eventually([&] { return Held() == 1; }));
  leaves.End();
  EXPECT_TRUE(Eventually([&] { return Held() == 0; }));
  EXPECT_TRUE(Eventually([&] {
    return Metric(
               R"(kvstore_call_errors_total{backend="back",code="CANCELLED",door="http",operation="PutRow"})") ==
           1;
  }));
  EXPECT_TRUE(gate_->Done("migrating", "r").empty());
}

TEST_F(HttpGatedTest, ACallEndsWhenItsClientIsGoneAlsoBehindRequestsThatWereNotRead) {
  gate_->Set(Migrates("migrating"));
  HttpClient leaves = Client();
  std::string together = testing::HttpRequest("POST", "/v1/put_row", PutOf("migrating", "r").dump());
  while (together.size() < 100'000) together += testing::HttpRequest("GET", "/v1/server");
  leaves.Send(together);
  ASSERT_TRUE(Eventually([&] { return Held() == 1; }));
  leaves.End();
  EXPECT_TRUE(Eventually([&] { return Held() == 0; }));
  EXPECT_TRUE(gate_->Done("migrating", "r").empty());
}

/// Holds every put of the row "held" until it is let go.
class Hold {
 public:
  explicit Hold(testing::Gate& gate) {
    gate.Set([this](std::string_view, std::string_view row) {
      if (row == "held") {
        ++waiting_;
        free_.wait();
      }
      return absl::OkStatus();
    });
  }
  ~Hold() { LetGo(); }
  int waiting() const { return waiting_; }
  void LetGo() {
    if (!std::exchange(gone_, true)) let_go_.set_value();
  }

 private:
  std::promise<void> let_go_;
  std::shared_future<void> free_{let_go_.get_future()};
  std::atomic<int> waiting_{0};
  bool gone_ = false;
};

TEST_F(HttpGatedTest, ACallTooManyIsRefusedAndMayBeRetried) {
  ServerOptions options = testing::TestServerOptions();
  options.limits.max_calls = 2;
  ServeHttp(options);
  Hold hold(*gate_);
  std::vector<std::future<HttpAnswer>> held;
  for (int i = 0; i < 2; ++i)
    held.push_back(std::async(std::launch::async, [&] { return Post("put_row", PutOf("other", "held")); }));
  ASSERT_TRUE(Eventually([&] { return hold.waiting() == 2; }));
  const HttpAnswer refused = Post("put_row", PutOf("other", "r"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.code(), "RESOURCE_EXHAUSTED");
  EXPECT_TRUE(refused.headers.contains("retry-after"));
  EXPECT_GT(Metric("kvstore_calls_refused_total"), 0) << "figures are told all the same";
  hold.LetGo();
  for (auto& answer : held) EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(Post("put_row", PutOf("other", "r")).status, 200);
}

TEST_F(HttpGatedTest, AServerThatStopsAnswersWhatIsInFlight) {
  Hold hold(*gate_);
  HttpClient kept = Client();
  EXPECT_EQ(kept.Get("/readyz").status, 200);
  HttpClient idle = Client();
  EXPECT_EQ(idle.Get("/healthz").status, 200);
  HttpClient busy = Client();
  busy.Send(testing::HttpRequest("POST", "/v1/put_row", PutOf("other", "held").dump()));
  ASSERT_TRUE(Eventually([&] { return hold.waiting() == 1; }));
  std::thread drains([&] { server_->Drain(); });
  EXPECT_TRUE(idle.IsClosed()) << "nothing of it is in flight";
  hold.LetGo();
  const HttpAnswer answer = busy.Read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(busy.IsClosed());
  drains.join();
  EXPECT_EQ(gate_->Done("other", "held").size(), 1u);
  EXPECT_TRUE(kept.IsClosed());
}

// ---- repetitions ----

constexpr char kId[] = "00112233-4455-6677-8899-aabbccddeeff";

TEST_F(HttpTest, AWriteWithAnIdIsDoneOnce) {
  Serve();
  const HttpHeaders headers = {{"Kv-Request-Id", kId}};
  const Json first = Ok("put_row", PutOf("rows", "r"), headers);
  EXPECT_EQ(Ok("put_row", PutOf("rows", "r"), headers), first) << "the same timestamp";
  EXPECT_EQ(Ok("get_row", {{"dataset", "rows"}, {"row", "r"}, {"versions", 9}})["items"][0]["cells"].size(),
            1u);
  // The same ID of another operation is another one; a read needs none.
  Ok("delete_row", {{"dataset", "rows"}, {"row", "r"}}, headers);
  EXPECT_TRUE(Ok("get_row", {{"dataset", "rows"}, {"row", "r"}}, headers)["items"].empty());
  const Json many = {{"dataset", "rows"}, {"rows", {PutOf("rows", "a"), PutOf("rows", "b")}}};
  Json rows = many;
  for (Json& row : rows["rows"]) row.erase("dataset");
  EXPECT_EQ(Ok("put_rows", rows, headers), Ok("put_rows", rows, headers));
  for (const char* none :
       {"1", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeefg"}) {
    const HttpAnswer answer =
        HttpClient(port()).Post("put_row", PutOf("rows", "r"), {{"Kv-Request-Id", none}});
    Refused(answer, 400, "INVALID_ARGUMENT", "Kv-Request-Id");
  }
}

TEST_F(HttpTest, AFailedWriteWithAnIdMayBeDoneAgain) {
  Serve();
  const HttpHeaders headers = {{"Kv-Request-Id", kId}};
  Refused(HttpClient(port()).Post("put_row", PutOf("none", "r"), headers), 404, "NOT_FOUND");
  ASSERT_OK(served_->router().CreateDataset({.name = "none"}));
  Ok("put_row", PutOf("none", "r"), headers);
}

TEST_F(HttpTest, ACreateWithAnIdMakesOneObject) {
  Serve();
  const HttpHeaders headers = {{"Kv-Request-Id", kId}};
  const Json create = {{"dataset", "pins"}, {"data", {{"title", "chair"}}}};
  const Json first = Ok("create_object", create, headers);
  EXPECT_EQ(Ok("create_object", create, headers), first);
  served_->Restart();
  EXPECT_EQ(Ok("create_object", create, headers), first) << "the ID is stored with the object";
  EXPECT_EQ(Ok("scan_objects", {{"dataset", "pins"}})["objects"].size(), 1u);
}

TEST_F(HttpTest, AnUpdateOfALargeObjectIsAnsweredAgainAsLongAsItIsTheSame) {
  Serve();
  const std::string id =
      Ok("create_object", {{"dataset", "pins"}, {"data", {{"text", std::string(5'000, 'x')}}}})["object_id"];
  const HttpHeaders headers = {{"Kv-Request-Id", kId}};
  const Json update = {{"dataset", "pins"}, {"object_id", id}, {"merge_patch", {{"n", 1}}}};
  const Json first = Ok("update_object", update, headers);
  EXPECT_EQ(first["data"]["n"], 1);
  EXPECT_EQ(Ok("update_object", update, headers), first);
  Ok("update_object", {{"dataset", "pins"}, {"object_id", id}, {"merge_patch", {{"n", 2}}}});
  const HttpAnswer changed = HttpClient(port()).Post("update_object", update, headers);
  Refused(changed, 503, "UNAVAILABLE", "was changed since");
  EXPECT_EQ(changed.json()["error"]["in_doubt"], true);
}

TEST_F(HttpTest, ADocumentMayNestAsDeepAsTheStoreAllows) {
  Serve();
  Json document = Json::object();
  for (int i = 1; i < 100; ++i) document = Json{{"a", std::move(document)}};
  const std::string id = Ok("create_object", {{"dataset", "pins"}, {"data", document}})["object_id"];
  // The answer that is kept for repetitions has the document in it, and nests deeper.
  const Json update = {{"dataset", "pins"}, {"object_id", id}, {"merge_patch", {{"n", 1}}}};
  const HttpHeaders headers = {{"Kv-Request-Id", kId}};
  const Json first = Ok("update_object", update, headers);
  EXPECT_EQ(Ok("update_object", update, headers), first);
  document = Json{{"a", std::move(document)}};
  Refused(HttpClient(port()).Post("create_object", {{"dataset", "pins"}, {"data", document}}), 400,
          "INVALID_ARGUMENT", "data: JSON nests 101 deep");
}

TEST_F(HttpTest, AnotherServerSaysThatItDoesNotKnowTheAttemptBefore) {
  Serve();
  HttpClient client(port());
  const std::string instance = client.Get("/v1/server").headers.at("kv-instance");
  EXPECT_EQ(client.Get("/v1/server").json()["instance"], instance);
  HttpHeaders headers = {{"Kv-Request-Id", kId}, {"Kv-First-Instance", instance}};
  Ok("put_row", PutOf("rows", "r"), headers);
  served_->Restart();
  headers["Kv-Request-Id"] = "ffffffffffffffffffffffffffffffff";
  const HttpAnswer lost = HttpClient(port()).Post("put_row", PutOf("rows", "s"), headers);
  Refused(lost, 503, "UNAVAILABLE", "restarted");
  EXPECT_EQ(lost.json()["error"]["in_doubt"], true);
  EXPECT_FALSE(lost.headers.contains("retry-after"));
  EXPECT_TRUE(Ok("get_row", {{"dataset", "rows"}, {"row", "s"}})["items"].empty());
}

TEST_F(HttpGatedTest, ARepetitionOfAWriteThatIsInFlightIsRefused) {
  Hold hold(*gate_);
  auto first = std::async(std::launch::async, [&] {
    return Post("put_row", PutOf("other", "held"), {{"Kv-Request-Id", kId}});
  });
  ASSERT_TRUE(Eventually([&] { return hold.waiting() == 1; }));
  const HttpAnswer second = Post("put_row", PutOf("other", "held"), {{"Kv-Request-Id", kId}});
  EXPECT_EQ(second.status, 503);
  EXPECT_TRUE(second.headers.contains("retry-after"));
  hold.LetGo();
  EXPECT_EQ(first.get().status, 200);
  EXPECT_EQ(gate_->Done("other", "held").size(), 1u);
}

// ---- figures ----

TEST_F(HttpTest, CallsAreCountedByTheirDoor) {
  Serve();
  PutCell("r");
  PutCell("r");
  Fails("get_row", {{"dataset", "none"}, {"row", "r"}}, 404, "NOT_FOUND");
  const auto store = served_->Client();
  const CellWrite cell{"c", "v", 1};
  ASSERT_OK(store->PutRow("rows", "r", {&cell, 1}, {}));
  EXPECT_EQ(
      served_->Metric(R"(kvstore_call_seconds_count{backend="rocksdb",door="http",operation="PutRow"})"), 2);
  EXPECT_EQ(
      served_->Metric(R"(kvstore_call_seconds_count{backend="rocksdb",door="grpc",operation="PutRow"})"), 1);
  EXPECT_EQ(served_->Metric(
                R"(kvstore_call_errors_total{backend="",code="NOT_FOUND",door="http",operation="GetRow"})"),
            1);
  EXPECT_GT(
      served_->Metric(R"(kvstore_request_bytes_total{backend="rocksdb",door="http",operation="PutRow"})"), 0);
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_bytes_in_flight") == 0; }))
      << "it was all given back";
}

}  // namespace
}  // namespace kvstore
