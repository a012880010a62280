#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/outcome.h"
#include "client/caller.h"
#include "client/client.h"
#include "kvstore_api/call_scope.h"
#include "kvstore_api/connect.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/loopback.h"
#include "tests/support/processes.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// `kv serve` as it runs in production: killed, overrun, stopped.
namespace kvstore::testing {
namespace {

// Sanitizers keep memory of their own beside each allocation.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kMaxConnectionBytes = 512 << 10;
#else
constexpr uint64_t kMaxConnectionBytes = 64 << 10;
#endif

class ServerProcess : public ::testing::Test {
 protected:
  const TempDir dir_;
  KvServer server_{KV_PROGRAM, {"--data", (dir_ / "store").string()}};
};

/// Writers that put rows and create objects, each under a name of its own, and record what was acknowledged.
struct Writer {
  std::map<std::string, std::string> rows;  // acknowledged
  std::map<std::string, uint64_t> objects;  // acknowledged, by their content
  std::set<std::string> tried;              // objects that were tried
  std::vector<std::string> other_errors;
};

TEST_F(ServerProcess, KilledUnderLoadItLosesNoAcknowledgedWriteAndMakesNoObjectTwice) {
  const uint64_t rounds = Rounds("KV_KILL_ROUNDS", 6);
  Random random(Seed("kill"));
  {
    const auto store = *Connect(server_.address());
    ASSERT_OK(store->CreateDataset({.name = "rows", .max_versions = 0}));
    ASSERT_OK(store->CreateDataset({.name = "pins", .shape = Shape::kObjects}));
  }
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> done{0};
  std::vector<Writer> writers(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < writers.size(); ++t) {
    threads.emplace_back([&, t] {
      Writer& mine = writers[t];
      const auto store = *Connect(server_.address(), {.deadline_ms = 20'000});
      for (int i = 0; !stop; ++i) {
        const std::string name = fmt::format("{}-{:06}", t, i);
        const CellWrite cell{"c", name, std::nullopt};
        if (const auto put = store->PutRow("rows", name, {&cell, 1}, {}); put.ok()) {
          mine.rows[name] = name;
        } else if (!IsInDoubt(put.status())) {
          mine.other_errors.push_back(put.status().ToString());
        }
        const std::string data = fmt::format(R"({{"name":"{}"}})", name);
        mine.tried.insert(data);
        // With its retries the call must succeed, because the server comes back before the deadline.
        if (const auto made = store->CreateObject("pins", data, {}); made.ok()) {
          mine.objects[data] = *made;
        } else {
          mine.other_errors.push_back(made.status().ToString());
        }
        ++done;
      }
    });
  }
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t until = done + 50 + random.Below(300);
    EXPECT_TRUE(Eventually([&] { return done >= until; }));
    server_.Kill();
    server_.Start();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();

  const auto store = *Connect(server_.address());
  std::map<std::string, int> made;
  for (const Writer& writer : writers) {
    EXPECT_EQ(writer.other_errors, std::vector<std::string>());
    for (const auto& [row, value] : writer.rows) {
      const auto read = store->GetRow("rows", row, {.versions = 10});
      ASSERT_OK(read);
      ASSERT_EQ(read->items.size(), 1u) << "lost: " << row;
      EXPECT_EQ(read->items[0].cells.size(), 1u) << "written twice: " << row;
    }
    for (const auto& [data, id] : writer.objects) {
      ASSERT_OK_AND_ASSIGN(const Object object, store->GetObject("pins", id, {}));
      EXPECT_EQ(object.data, data);
    }
  }
  // Finds all objects: each must exist at most once. IDs are dense on 16 shards, except for gaps after a
  // kill.
  size_t found = 0;
  std::vector<uint64_t> ids;
  for (const Writer& writer : writers) {
    for (const auto& [data, id] : writer.objects) ids.push_back(id);
  }
  const uint64_t last = *std::max_element(ids.begin(), ids.end(), [](uint64_t a, uint64_t b) {
    return (a & 0xFFFFFFFFF) < (b & 0xFFFFFFFFF);
  }) & 0xFFFFFFFFF;
  const uint64_t type = ids[0] >> 36 & 0x3FF;
  for (uint64_t shard = 0; shard < 16; ++shard) {
    std::vector<uint64_t> wanted;
    for (uint64_t local = 1; local <= last + 200; ++local) wanted.push_back(shard << 46 | type << 36 | local);
    ASSERT_LE(wanted.size(), 10'000u);
    ASSERT_OK_AND_ASSIGN(const auto objects, store->GetObjects("pins", wanted, {}));
    for (const auto& object : objects) {
      if (!object.ok()) continue;
      ++found;
      EXPECT_EQ(++made[object->data], 1) << "made twice: " << object->data;
    }
  }
  size_t acknowledged = 0;
  for (const Writer& writer : writers) acknowledged += writer.objects.size();
  EXPECT_GE(found, acknowledged);
}

/// Returns the calls in flight, with the one that asks.
int CallsInFlight(const KvServer& server) {
  client::Client client(*client::Caller::Open(server.address(), {}));
  const auto text = client.GetMetrics();
  EXPECT_OK(text);
  const std::string name = "\nkvstore_calls_in_flight ";
  return std::stoi(text->substr(text->find(name) + name.size()));
}

class ServerEnd : public ::testing::Test {
 protected:
  ServerEnd() { std::ofstream(config_) << R"({"data": "store", "server": {"limits": {"drain_ms": 100}}})"; }

  /// The command line of a server that hangs at a point, and writes its log to a file.
  std::vector<std::string> HangsAt(const std::string& point) const {
    return {"-c", "KV_FAIL_POINT=hang:" + point + " exec \"$0\" \"$@\" 2>" + log_.string(), KV_PROGRAM,
            "--config", config_.string()};
  }
  std::string Log() const {
    std::ifstream in(log_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static absl::Status Put(KVStore& store) {
    const CellWrite cell{"c", "v", std::nullopt};
    return store.PutRow("rows", "acknowledged", {&cell, 1}, {}).status();
  }
  /// Expects that what Put has written is there after another start, and that this one ends in order.
  void ExpectThatNothingIsLost() const {
    KvServer again(KV_PROGRAM, {"--config", config_.string()});
    const auto row = (*Connect(again.address()))->GetRow("rows", "acknowledged", {});
    ASSERT_OK(row);
    EXPECT_EQ(row->items.size(), 1u);
    EXPECT_EQ(again.Stop(), 0);
  }

  const TempDir dir_;
  const std::filesystem::path config_ = dir_ / "kv.json";
  const std::filesystem::path log_ = dir_ / "log";
};

TEST_F(ServerEnd, ItEndsInTimeAlsoWhereACallHangs) {
  {
    KvServer server("/bin/sh", HangsAt("CountMapping"));
    const auto store = *Connect(server.address(), {.deadline_ms = 600'000});
    ASSERT_OK(store->CreateDataset({.name = "rows"}));
    ASSERT_OK(store->CreateDataset({.name = "boards", .shape = Shape::kMappings}));
    // A call that was answered may be counted for a moment more.
    ASSERT_TRUE(Eventually([&] { return CallsInFlight(server) <= 1; }));
    std::atomic<bool> over{false};
    std::thread hangs([&] {
      const CallScope scope(CallLimits{.cancelled = &over});
      EXPECT_FALSE(store->CountMapping("boards", 1).ok());
    });
    // Writes acknowledged meanwhile are kept, although nobody closes the store.
    ASSERT_OK(Put(*store));
    EXPECT_TRUE(Eventually([&] { return CallsInFlight(server) > 1; }));
    EXPECT_EQ(server.Stop(), 1);
    over = true;
    hangs.join();
  }
  EXPECT_NE(Log().find("has not ended: 1 calls: CountMapping for "), std::string::npos) << Log();
  ExpectThatNothingIsLost();
}

TEST_F(ServerEnd, ItEndsInTimeAlsoWhereTheStoreDoesNotClose) {
  {
    KvServer server("/bin/sh", HangsAt("engine.close"));
    const auto store = *Connect(server.address());
    ASSERT_OK(store->CreateDataset({.name = "rows"}));
    ASSERT_OK(Put(*store));
    EXPECT_EQ(server.Stop(), 1);
  }
  EXPECT_NE(Log().find("has not ended: the store, which is being closed"), std::string::npos) << Log();
  ExpectThatNothingIsLost();
}

TEST_F(ServerEnd, ItEndsInTimeAlsoWhileItsStoreIsOpened) {
  std::vector<std::string> command = HangsAt("engine.open");
  command.insert(command.begin(), "/bin/sh");
  for (const char* const word : {"serve", "--listen"}) command.emplace_back(word);
  command.push_back("127.0.0.1:" + std::to_string(FreePort()));
  const pid_t server = ForkProgram(command, (dir_ / "out").string());
  // The directory is made when the signals are received already.
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(dir_ / "store"); }));
  ::kill(server, SIGTERM);
  EXPECT_EQ(Wait(server).code, 1);
  EXPECT_NE(Log().find("has not ended: the store, which is being opened"), std::string::npos) << Log();
}

TEST_F(ServerEnd, ItEndsInTimeAlsoWhereNobodyReadsItsLog) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "ThreadSanitizer has _exit() flush the streams, and so wait for the thread that hangs in one";
#endif
  ASSERT_EQ(::mkfifo(log_.c_str(), 0600), 0);
  const int log = ::open(log_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(log, 0);
  KvServer server("/bin/sh", HangsAt("nowhere"));
  const auto store = *Connect(server.address());
  ASSERT_OK(store->CreateDataset({.name = "rows"}));
  ASSERT_OK(Put(*store));
  const std::string line(4096, 'x');
  while (::write(log, line.data(), line.size()) > 0) continue;
  ASSERT_EQ(errno, EAGAIN) << "the pipe is not full";
  EXPECT_EQ(server.Stop(), 1);
  ::close(log);
  std::filesystem::remove(log_);
  ExpectThatNothingIsLost();
}

TEST_F(ServerProcess, TenThousandConnectionsLeaveRoomForOthers) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const size_t wanted = std::min<size_t>(10'000, limit.rlim_max - 500);
  const auto store = *Connect(server_.address());
  ASSERT_OK(store->CreateDataset({.name = "rows"}));
  const uint64_t before = server_.ResidentBytes();
  std::vector<int> connections;
  const sockaddr_in address = Loopback(server_.port());
  // Half of them send nothing, the other half begin HTTP/2 and then send nothing.
  const std::string hello =
      std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9);
  for (size_t i = 0; i < wanted; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << i;
    if (i % 2 == 0) ::send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    connections.push_back(fd);
  }
  const CellWrite cell{"c", "v", 1};
  for (int i = 0; i < 100; ++i) ASSERT_OK(store->PutRow("rows", std::to_string(i), {&cell, 1}, {}));
  // A new client is served, too.
  EXPECT_OK((*Connect(server_.address(), {.deadline_ms = 60'000}))->GetRow("rows", "1", {}));
  const uint64_t grown = server_.ResidentBytes() - before;
  EXPECT_LT(grown / wanted, kMaxConnectionBytes) << "bytes a connection";
  RecordProperty("kib_a_connection", static_cast<int>(grown / wanted / 1024));
  for (const int fd : connections) ::close(fd);
  EXPECT_OK(store->GetRow("rows", "1", {}));
}

TEST_F(ServerProcess, SigtermEndsItInOrder) {
  const auto store = *Connect(server_.address());
  ASSERT_OK(store->CreateDataset({.name = "rows"}));
  EXPECT_EQ(server_.Stop(), 0);
  server_.Start();
  EXPECT_OK(store->GetRow("rows", "r", {}));
}

TEST_F(ServerProcess, TheCommandsWorkAgainstItAsTheyDoEmbedded) {
  const auto kv = [&](std::vector<std::string> arguments, const std::string& input = "") {
    std::vector<std::string> command = {KV_PROGRAM, "--server", server_.address()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Output output = RunProgram(command, input);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  };
  kv({"dataset", "create", "events", "--max-versions", "5"});
  kv({"dataset", "create", "pins", "--shape", "objects", "--type", "7"});
  kv({"dataset", "create", "boards", "--shape", "mappings"});
  EXPECT_NE(kv({"dataset", "list"}).find("events"), std::string::npos);
  kv({"dataset", "alter", "events", "--ttl-ms", "0"});
  kv({"put", "events", "user:7", "click=pin:3"});
  EXPECT_NE(kv({"get", "events", "user:7"}).find("pin:3"), std::string::npos);
  EXPECT_NE(kv({"scan", "events"}).find("user:7"), std::string::npos);
  const std::string id = kv({"object", "create", "pins", R"({"a":1})"});
  const std::string trimmed = id.substr(0, id.find('\n'));
  EXPECT_NE(kv({"object", "get", "pins", trimmed}).find(R"("a":1)"), std::string::npos);
  kv({"mapping", "add", "boards", "1", trimmed});
  EXPECT_NE(kv({"mapping", "list", "boards", "1", "--objects"}).find(R"("a":1)"), std::string::npos);
  EXPECT_EQ(kv({"mapping", "count", "boards", "1"}), "1\n");
  kv({"compact", "events"});
  EXPECT_EQ(kv({"exec"}, R"({"op":"get_row","dataset":"events","row":"user:7","id":1})"
                         "\n")
                .substr(0, 2),
            "{\"");
  kv({"import", "events", "-"}, R"({"row":"user:8","items":[{"column":"x","value":"y"}]})"
                                "\n");
  EXPECT_NE(kv({"get", "events", "user:8"}).find("y"), std::string::npos);
  kv({"delete", "events", "user:8"});
  kv({"dataset", "drop", "events", "--yes"});
}

}  // namespace
}  // namespace kvstore::testing
