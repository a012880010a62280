#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "kvstore_api/call_scope.h"
#include "server/call/access.h"
#include "tests/server/http_fixture.h"
#include "tests/support/eventually.h"

/// Calls that follow a dataset, over gRPC and as events over HTTP.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::HttpAnswer;
using testing::HttpClient;
using testing::HttpRequest;
using testing::HttpTest;
using testing::Json;

class WatchChangesTest : public HttpTest {
 protected:
  void ServeChanges(const ServerOptions& options = Options()) {
    Serve(options);
    ASSERT_OK(served_->router().CreateDataset({.name = "kept", .keep_changes_ms = 86'400'000}));
  }
  absl::Status Put(const std::string& row, const std::string& value = "v") {
    const CellWrite cell{"c", value, std::nullopt};
    return served_->router().PutRow("kept", row, {&cell, 1}, {}).status();
  }
  /// Reads until there are changes; returns the rows that they are of.
  static std::vector<std::string> NextRows(ChangeStream& stream) {
    for (;;) {
      const auto page = stream.Next();
      EXPECT_OK(page.status());
      if (!page.ok()) return {};
      std::vector<std::string> rows;
      for (const Change& change : page->changes) rows.push_back(std::get<RowChange>(change.what).row);
      if (!rows.empty()) return rows;
    }
  }
  double Waiting(const std::string& token = "") const {
    return served_->Metric("kvstore_followers_waiting", token);
  }
};

using Rows = std::vector<std::string>;

// ---- streams ----

TEST_F(WatchChangesTest, AStreamTellsWhatIsWrittenAsItIsWritten) {
  ServeChanges();
  const auto client = served_->Client();
  for (KVStore* const store :
       {static_cast<KVStore*>(client.get()), static_cast<KVStore*>(&served_->router())}) {
    ASSERT_OK_AND_ASSIGN(const auto stream, store->WatchChanges("kept", kChangesFromNow));
    ASSERT_OK_AND_ASSIGN(const ChangePage first, stream->Next());
    EXPECT_TRUE(first.changes.empty());
    EXPECT_GT(first.complete_until_ms, 0u);
    ASSERT_OK(Put("a"));
    EXPECT_EQ(NextRows(*stream), Rows({"a"}));
    ASSERT_OK(Put("b"));
    EXPECT_EQ(NextRows(*stream), Rows({"b"}));
    // While nothing is written it says that all was told.
    ASSERT_OK_AND_ASSIGN(const ChangePage idle, stream->Next());
    EXPECT_TRUE(idle.changes.empty());
    EXPECT_GE(idle.complete_until_ms, first.complete_until_ms);
    // Anybody may go on from there.
    ASSERT_OK(Put("c"));
    ASSERT_OK_AND_ASSIGN(const auto other, store->WatchChanges("kept", idle.token));
    EXPECT_EQ(NextRows(*other), Rows({"c"}));
    EXPECT_EQ(NextRows(*stream), Rows({"c"}));
  }
}

TEST_F(WatchChangesTest, MistakesAreToldWhenTheStreamIsOpened) {
  ServeChanges();
  const auto client = served_->Client();
  for (KVStore* const store :
       {static_cast<KVStore*>(client.get()), static_cast<KVStore*>(&served_->router())}) {
    EXPECT_TRUE(absl::IsNotFound(store->WatchChanges("none", kChangesFromNow).status()));
    EXPECT_TRUE(absl::IsFailedPrecondition(store->WatchChanges("rows", kChangesFromNow).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(store->WatchChanges("kept", "yesterday").status()));
  }
}

TEST_F(WatchChangesTest, ADatasetThatIsDroppedEndsItsStreams) {
  ServeChanges();
  const auto client = served_->Client();
  ASSERT_OK_AND_ASSIGN(const auto stream, client->WatchChanges("kept", kChangesFromNow));
  ASSERT_OK(stream->Next().status());
  ASSERT_OK(served_->router().DropDataset("kept", {}));
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(stream->Next().status()); }));
  // Another one of the name is another one.
  ASSERT_OK(served_->router().CreateDataset({.name = "kept", .keep_changes_ms = 86'400'000}));
  EXPECT_TRUE(absl::IsInvalidArgument(stream->Next().status()));
}

TEST_F(WatchChangesTest, ACallerMayGiveUpAndGoOn) {
  ServeChanges();
  const auto client = served_->Client();
  ASSERT_OK_AND_ASSIGN(const auto stream, client->WatchChanges("kept", kChangesFromNow));
  ASSERT_OK(stream->Next().status());
  {
    const std::atomic<bool> cancelled{true};
    const CallScope scope({.deadline = std::nullopt, .cancelled = &cancelled});
    EXPECT_TRUE(absl::IsCancelled(stream->Next().status()));
  }
  {
    const CallScope scope(std::chrono::milliseconds(30));
    // A page without changes may be on its way already.
    EXPECT_TRUE(Eventually([&] { return absl::IsDeadlineExceeded(stream->Next().status()); }));
  }
  ASSERT_OK(Put("a"));
  EXPECT_EQ(NextRows(*stream), Rows({"a"}));
}

TEST_F(WatchChangesTest, AStreamGoesOnAtAServerThatWasRestarted) {
  ServeChanges();
  const auto client = served_->Client({.deadline_ms = 60'000});
  ASSERT_OK_AND_ASSIGN(const auto stream, client->WatchChanges("kept", kChangesFromNow));
  ASSERT_OK(stream->Next().status());
  served_->Restart();
  ASSERT_OK(Put("a"));
  EXPECT_EQ(NextRows(*stream), Rows({"a"}));
}

TEST_F(WatchChangesTest, FollowersShareWhatIsRead) {
  ServerOptions options = Options();
  options.limits.threads = 2;  // those that wait occupy none
  ServeChanges(options);
  constexpr size_t kFollowers = 20;
  constexpr int kWrites = 30;
  const auto client = served_->Client();
  std::atomic<size_t> told{0};  // changes, to all of them
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kFollowers; ++i) {
    threads.emplace_back([&] {
      const CallScope scope({.deadline = std::nullopt, .cancelled = &stop});
      const auto stream = client->WatchChanges("kept", kChangesFromBegin);
      ASSERT_OK(stream.status());
      for (;;) {
        const auto page = (*stream)->Next();
        if (stop) return;
        ASSERT_OK(page.status());
        told += page->changes.size();
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return Waiting() == kFollowers; }));
  for (int i = 1; i <= kWrites; ++i) {
    ASSERT_OK(Put("r" + std::to_string(i)));
    EXPECT_TRUE(Eventually([&] { return told == static_cast<size_t>(i) * kFollowers; })) << i;
  }
  // Each page was read for one of them, and given to the others; a machine that is very busy may forget some.
  const double read = served_->Metric("kvstore_change_pages_read_total");
  const double shared = served_->Metric("kvstore_change_pages_shared_total");
  EXPECT_GE(read, kWrites);
  EXPECT_GE(shared, 5 * read);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  // Those that are gone wait for nothing.
  EXPECT_TRUE(Eventually([&] { return Waiting() == 0; }));
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 1; }));
}

TEST_F(WatchChangesTest, PagesThatAreKeptForOthersAreFew) {
  ServeChanges();
  constexpr int kWrites = 60;
  const std::string large(size_t{1} << 20, 'x');
  for (int i = 0; i < kWrites; ++i) ASSERT_OK(Put("r" + std::to_string(i), large));
  // Each reads all of it, in pages of one change.
  const auto client = served_->Client();
  double most = 0;
  ASSERT_OK_AND_ASSIGN(const auto stream, client->WatchChanges("kept", kChangesFromBegin));
  for (int told = 0; told < kWrites; told += static_cast<int>(NextRows(*stream).size())) {
    most = std::max(most, served_->Metric("kvstore_change_pages_bytes"));
  }
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 16 << 20);
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_change_pages_bytes") == 0; }));
}

TEST_F(WatchChangesTest, AServerThatStopsEndsItsStreams) {
  ServeChanges();
  HttpClient events(port());
  events.Send(HttpRequest("GET", "/v1/changes/kept"));
  EXPECT_EQ(events.ReadHead().status, 200);
  std::string chunk;
  EXPECT_TRUE(events.ReadChunk(chunk));
  const auto client = served_->Client();
  ASSERT_OK_AND_ASSIGN(const auto stream, client->WatchChanges("kept", kChangesFromNow));
  std::thread drain([&] { served_->server().Drain(); });
  std::string end;
  while (events.ReadChunk(chunk)) end = chunk;
  EXPECT_NE(end.find("event: error"), std::string::npos) << end;
  EXPECT_NE(end.find("the server stops"), std::string::npos) << end;
  EXPECT_TRUE(events.IsClosed());
  drain.join();
  ASSERT_OK(stream->Next().status()) << "which was read when it was opened";
  const CallScope scope(std::chrono::milliseconds(300));
  EXPECT_FALSE(stream->Next().ok());
}

// ---- events ----

struct Event {
  std::string id;
  Json data;
};

/// Reads events until one fits.
template <typename Fits>
Event NextEvent(HttpClient& client, std::string& text, const Fits& fits) {
  for (;;) {
    size_t end = 0;
    while ((end = text.find("\n\n")) != std::string::npos) {
      std::istringstream lines(text.substr(0, end + 1));
      text.erase(0, end + 2);
      Event event;
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("id: ")) event.id = line.substr(4);
        if (line.starts_with("data: ")) event.data = Json::parse(line.substr(6));
      }
      if (fits(event)) return event;
    }
    std::string chunk;
    if (!client.ReadChunk(chunk)) {
      ADD_FAILURE() << "the events have ended: " << text;
      return {};
    }
    text += chunk;
  }
}
bool IsChange(const Event& event) { return event.data.contains("at"); }
bool IsComplete(const Event& event) { return event.data.contains("complete_until"); }

TEST_F(WatchChangesTest, EventsHaveTheFormOfLines) {
  ServeChanges();
  ASSERT_OK(Put("a", "first"));
  HttpClient client(port());
  client.Send(HttpRequest("GET", "/v1/changes/kept"));
  const HttpAnswer head = client.ReadHead();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-type"), "text/event-stream");
  std::string text;
  const Event change = NextEvent(client, text, IsChange);
  EXPECT_EQ(change.data["row"], "a");
  EXPECT_EQ(change.data["column"], "c");
  EXPECT_EQ(change.data["cells"][0]["value"], "first");
  EXPECT_EQ(change.data["token"], change.id);
  const Event complete = NextEvent(client, text, IsComplete);
  EXPECT_EQ(complete.data["token"], complete.id);
  EXPECT_GE(complete.data["complete_until"].get<uint64_t>() + 1, change.data["at"].get<uint64_t>());

  ASSERT_OK(Put("b"));
  EXPECT_EQ(NextEvent(client, text, IsChange).data["row"], "b");
  // A browser that connects again says what it had last.
  const std::pair<std::string, testing::HttpHeaders> again_with[] = {
      {"/v1/changes/kept?from=now", {{"Last-Event-ID", change.id}}},
      {"/v1/changes/kept?from=" + change.id, {}}};
  for (const auto& [target, headers] : again_with) {
    HttpClient again(port());
    again.Send(HttpRequest("GET", target, "", headers));
    EXPECT_EQ(again.ReadHead().status, 200);
    std::string rest;
    EXPECT_EQ(NextEvent(again, rest, IsChange).data["row"], "b");
  }
}

TEST_F(WatchChangesTest, MistakesAreAnswersLikeOthers) {
  ServeChanges();
  const auto get = [&](const std::string& target) { return HttpClient(port()).Get(target); };
  Refused(get("/v1/changes/none"), 404, "NOT_FOUND");
  Refused(get("/v1/changes/rows"), 412, "FAILED_PRECONDITION", "--keep-changes-ms");
  Refused(get("/v1/changes/kept?from=yesterday"), 400, "INVALID_ARGUMENT", "from: must be a token");
  Refused(get("/v1/changes/kept?since=now"), 400, "INVALID_ARGUMENT", "query");
  Refused(get("/v1/changes/%FF"), 404, "NOT_FOUND");
  Refused(HttpClient(port()).Ask("POST", "/v1/changes/kept", "{}"), 405, "INVALID_ARGUMENT");
  HttpClient old(port());
  old.Send("GET /v1/changes/kept HTTP/1.0\r\n\r\n");
  Refused(old.Read(), 400, "INVALID_ARGUMENT", "HTTP/1.1");
  // A mistake leaves the connection as it was.
  HttpClient client(port());
  Refused(client.Get("/v1/changes/none"), 404, "NOT_FOUND");
  EXPECT_EQ(client.Get("/v1/datasets/kept").status, 200);
}

TEST_F(WatchChangesTest, AClientThatLeavesIsForgotten) {
  ServeChanges();
  {
    HttpClient client(port());
    client.Send(HttpRequest("GET", "/v1/changes/kept"));
    EXPECT_EQ(client.ReadHead().status, 200);
    EXPECT_TRUE(Eventually([&] { return Waiting() == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return Waiting() == 0; }));
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 1; }));
}

TEST_F(WatchChangesTest, AClientThatTakesNothingIsCutOff) {
  ServerOptions options = Options();
  options.limits.stall_ms = 200;
  ServeChanges(options);
  const std::string large(size_t{1} << 20, 'x');
  for (int i = 0; i < 16; ++i) ASSERT_OK(Put("r" + std::to_string(i), large));
  HttpClient client(port());
  client.Send(HttpRequest("GET", "/v1/changes/kept"));
  EXPECT_EQ(client.ReadHead().status, 200);
  EXPECT_TRUE(Eventually([&] { return served_->Metric("kvstore_calls_in_flight") == 1; }));
  std::string last = "none";
  while (client.ReadChunk(last)) continue;
  EXPECT_NE(last, "") << "the answer has an end";
}

TEST_F(WatchChangesTest, AClientThatTakesNothingIsCutOffThoughLittleIsTold) {
  ServerOptions options = Options();
  options.limits.stall_ms = 300;
  ServeChanges(options);
  HttpClient client(port());
  client.Send(HttpRequest("GET", "/v1/changes/kept"));
  EXPECT_TRUE(Eventually([&] { return Waiting() == 1; }));
  // The first ones go into the buffers of the system, which is as if they were taken.
  const std::string large(size_t{1} << 20, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_OK(Put("r" + std::to_string(i), large));
  EXPECT_TRUE(Eventually([&] {
    EXPECT_OK(Put("small"));
    return served_->Metric("kvstore_calls_in_flight") == 1;
  }));
}

// ---- rights ----

TEST_F(WatchChangesTest, WhoLosesTheRightIsToldNothingMore) {
  const testing::TempDir dir;
  const auto write = [&](const char* right) {
    std::ofstream out(dir / "new.json");
    out << R"({"tokens": [{"name": "reader", "sha256": ")" << server::TokenDigest("reader")
        << R"(", "rights": {"kept": ")" << right << R"("}}, {"name": "ops", "sha256": ")"
        << server::TokenDigest("ops") << R"(", "rights": {"*": "admin"}}]})";
    out.close();
    std::filesystem::rename(dir / "new.json", dir / "tokens.json");
  };
  write("read");
  ServerOptions options = Options();
  options.tokens = dir / "tokens.json";
  ServeChanges(options);
  HttpClient events(port());
  events.Send(HttpRequest("GET", "/v1/changes/kept", "", {{"Authorization", "Bearer reader"}}));
  EXPECT_EQ(events.ReadHead().status, 200);
  const auto client = served_->Client({.token = "reader"});
  ASSERT_OK_AND_ASSIGN(const auto stream, client->WatchChanges("kept", kChangesFromNow));
  EXPECT_TRUE(Eventually([&] { return Waiting("ops") == 2; }));

  write("none");
  EXPECT_TRUE(Eventually([&] { return absl::IsPermissionDenied(stream->Next().status()); }));
  std::string text;
  EXPECT_EQ(NextEvent(events, text, [](const Event& event) { return event.data.contains("error"); })
                .data["error"]["code"],
            "PERMISSION_DENIED");
  Refused(HttpClient(port()).Get("/v1/changes/kept", {{"Authorization", "Bearer reader"}}), 403,
          "PERMISSION_DENIED");
  Refused(HttpClient(port()).Get("/v1/changes/kept"), 401, "UNAUTHENTICATED");
}

}  // namespace
}  // namespace kvstore
