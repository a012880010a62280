#include <fcntl.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <librdkafka/rdkafkacpp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kvstore_api/connect.h"
#include "tests/support/eventually.h"
#include "tests/support/kv_server.h"
#include "tests/support/processes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// kv changes --sink kv-kafka: what is in the topic is what was written.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

/// Brokers of Kafka.
class Brokers {
 public:
  Brokers()
      : owner_(rd_kafka_new(RD_KAFKA_PRODUCER, nullptr, nullptr, 0)),
        brokers_(rd_kafka_mock_cluster_new(owner_, 2)) {
    rd_kafka_mock_topic_create(brokers_, "events", 4, 2);
  }
  ~Brokers() {
    rd_kafka_mock_cluster_destroy(brokers_);
    rd_kafka_destroy(owner_);
  }
  Brokers(const Brokers&) = delete;
  Brokers& operator=(const Brokers&) = delete;

  std::string address() const { return rd_kafka_mock_cluster_bootstraps(brokers_); }
  /// The next requests to store messages fail with an error after which a client tries again.
  void RefuseSome() {
    constexpr int16_t kProduce = 0;
    rd_kafka_mock_push_request_errors(brokers_, kProduce, 3, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                      RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                      RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
  }

 private:
  rd_kafka_t* const owner_;
  rd_kafka_mock_cluster_t* const brokers_;
};

struct Stored {
  std::string key;
  Json line;
  std::string token;
};

/// Reads the topic from its beginning.
class Reader {
 public:
  explicit Reader(const Brokers& brokers) {
    std::string error;
    const std::unique_ptr<RdKafka::Conf> conf(RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL));
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"bootstrap.servers", brokers.address()},
                                            {"group.id", "test"},
                                            {"auto.offset.reset", "earliest"}}) {
      EXPECT_EQ(conf->set(name, value, error), RdKafka::Conf::CONF_OK) << error;
    }
    consumer_.reset(RdKafka::KafkaConsumer::create(conf.get(), error));
    std::vector<RdKafka::TopicPartition*> partitions;
    for (int i = 0; i < 4; ++i) {
      partitions.push_back(RdKafka::TopicPartition::create("events", i, RdKafka::Topic::OFFSET_BEGINNING));
    }
    consumer_->assign(partitions);
    RdKafka::TopicPartition::destroy(partitions);
  }
  ~Reader() { consumer_->close(); }

  /// Reads until `enough` says so of all messages that were read.
  template <typename Enough>
  const std::vector<Stored>& ReadUntil(const Enough& enough) {
    EXPECT_TRUE(Eventually([&] {
      // All that is there: one at a time, many messages would take longer than this may wait.
      while (true) {
        const std::unique_ptr<RdKafka::Message> message(consumer_->consume(100));
        if (message->err() != RdKafka::ERR_NO_ERROR) return enough(stored_);
        Add(*message);
      }
    }));
    return stored_;
  }

 private:
  void Add(RdKafka::Message& message) {
    Stored stored;
    if (message.key() != nullptr) stored.key = *message.key();
    stored.line = Json::parse(std::string(static_cast<const char*>(message.payload()), message.len()));
    const auto headers = message.headers() != nullptr ? message.headers()->get("token")
                                                      : std::vector<RdKafka::Headers::Header>();
    if (!headers.empty()) stored.token = headers[0].value_string();
    stored_.push_back(std::move(stored));
  }

  std::unique_ptr<RdKafka::KafkaConsumer> consumer_;
  std::vector<Stored> stored_;
};

class KvKafka : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(store_->CreateDataset({.name = "events", .keep_changes_ms = 86'400'000}));
    ASSERT_OK(store_->SetConsumer("events", "kafka", kChangesFromBegin));
  }
  void Put(const std::string& row, int value) {
    const std::string text = std::to_string(value);
    const CellWrite cell{"c", text, std::nullopt};
    ASSERT_OK(store_->PutRow("events", row, {&cell, 1}, {}).status());
  }
  std::vector<std::string> Command(const std::string& more = "") const {
    return {
        KV_PROGRAM,
        "--server",
        server_.address(),
        "changes",
        "events",
        "--follow",
        "--consumer",
        "kafka",
        "--sink",
        std::string("exec ") + KV_KAFKA_PROGRAM + " --topic events --brokers " + brokers_.address() + more};
  }
  pid_t Start() { return ForkProgram(Command(), (dir_ / "out").string()); }
  /// Starts a sink, kills it once it has noted something, and waits until its kv-kafka has ended, too. What
  /// that stores late is refused by brokers once another one has begun; librdkafka's mock of them takes it.
  template <typename Meanwhile>
  void StartAndKill(const Meanwhile& meanwhile) {
    // Is read to its end when no kv-kafka has it open any more.
    const std::string errors = dir_ / "errors";
    ::mkfifo(errors.c_str(), 0600);
    const int reads = ::open(errors.c_str(), O_RDONLY | O_NONBLOCK);
    ASSERT_GE(reads, 0);
    const pid_t sink = ForkProgram(Command(" 2>" + errors), (dir_ / "out").string());
    const ChangeConsumer before = Noted();
    meanwhile();
    EXPECT_TRUE(Eventually([&] { return Noted().token != before.token; }));
    ::kill(sink, SIGKILL);
    Wait(sink);
    char text[200];
    EXPECT_TRUE(Eventually([&] { return ::read(reads, text, sizeof(text)) == 0; }));
    ::close(reads);
  }
  ChangeConsumer Noted() {
    const auto consumers = store_->ListConsumers("events");
    EXPECT_OK(consumers.status());
    return consumers.ok() && !consumers->empty() ? consumers->front() : ChangeConsumer();
  }

  const TempDir dir_;
  KvServer server_{KV_PROGRAM, {"--data", (dir_ / "store").string()}};
  const std::unique_ptr<KVStore> store_ = *Connect(server_.address());
  Brokers brokers_;
};

/// Returns the values of each row, in the order of their messages.
std::map<std::string, std::vector<int>> ValuesOf(const std::vector<Stored>& messages) {
  std::map<std::string, std::vector<int>> values;
  for (const Stored& stored : messages) {
    if (!stored.line["cells"].empty()) {
      values[stored.key].push_back(std::stoi(stored.line["cells"][0]["value"].get<std::string>()));
    }
  }
  return values;
}

TEST_F(KvKafka, EachChangeIsAMessage) {
  const pid_t sink = Start();
  Put("a", 1);
  Put("b", 2);
  ASSERT_OK(store_->DeleteRow("events", "a", {}));
  Reader reader(brokers_);
  const auto& messages = reader.ReadUntil([](const auto& read) { return read.size() >= 3; });
  ASSERT_EQ(messages.size(), 3u);
  for (const Stored& stored : messages) {
    EXPECT_EQ(stored.line["row"], stored.key);
    EXPECT_EQ(stored.line["token"], stored.token);
  }
  // Once all is stored the consumer has passed it.
  EXPECT_TRUE(Eventually([&] { return !Noted().token.empty() && Noted().lag_ms == 0; }));
  ::kill(sink, SIGTERM);
  EXPECT_EQ(Wait(sink).code, 0);
}

TEST_F(KvKafka, AllIsThereThoughTheBrokersRefuseSomeAndTheSinkIsKilled) {
  constexpr int kRows = 7;
  constexpr int kWrites = 400;
  for (int i = 0; i < kWrites;) {
    StartAndKill([&] {
      do {
        Put("r" + std::to_string(i % kRows), i);
        if (i % 100 == 50) brokers_.RefuseSome();
      } while (++i % 100 != 0);
    });
  }
  const pid_t sink = Start();
  // Those before may have stored all the others; by this one it is known that this one is at work.
  Put("last", 0);
  Reader reader(brokers_);
  const auto is_whole = [&](const std::vector<Stored>& messages) {
    auto values = ValuesOf(messages);
    if (values["last"].empty()) return false;
    for (int row = 0; row < kRows; ++row) {
      const auto& its = values["r" + std::to_string(row)];
      const int last = kWrites - 1 - (kWrites - 1 - row) % kRows;
      if (its.empty() || its.back() != last) return false;
    }
    return true;
  };
  reader.ReadUntil(is_whole);
  EXPECT_TRUE(Eventually([&] { return Noted().lag_ms == 0; }));
  ::kill(sink, SIGTERM);
  EXPECT_EQ(Wait(sink).code, 0);
}

TEST_F(KvKafka, WhatIsNotStoredIsNotNoted) {
  Put("a", 1);
  // Nobody listens there.
  std::vector<std::string> command =
      Command(" --set transaction.timeout.ms=1000 --set bootstrap.servers=127.0.0.1:1");
  const Output output = RunProgram(command);
  EXPECT_EQ(output.code, 1) << output.err;
  EXPECT_NE(output.err.find("kv-kafka: brokers "), std::string::npos) << output.err;
  EXPECT_GT(Noted().lag_ms, 0u);
}

TEST_F(KvKafka, MistakesAreExplained) {
  const Output setting = RunProgram(Command(" --set no.such.setting=1"));
  EXPECT_EQ(setting.code, 1);
  EXPECT_NE(setting.err.find("no.such.setting"), std::string::npos) << setting.err;
  EXPECT_EQ(RunProgram({KV_KAFKA_PROGRAM, "--topic", "t"}).code, 2);
  EXPECT_EQ(RunProgram({KV_KAFKA_PROGRAM, "--topic", "t", "--brokers", "b", "--set", "x"}).code, 2);
  EXPECT_EQ(
      RunProgram({KV_PROGRAM, "--server", server_.address(), "changes", "events", "--sink", "cat"}).code, 2);
  const Output lines =
      RunProgram({KV_KAFKA_PROGRAM, "--topic", "t", "--brokers", brokers_.address()}, "no line of changes\n");
  EXPECT_EQ(lines.code, 1);
  EXPECT_NE(lines.err.find("none of kv changes"), std::string::npos) << lines.err;
}

}  // namespace
}  // namespace kvstore::testing
