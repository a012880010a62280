#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/cli/kv_program.h"

/// `kv` when standard output cannot be written: its reader has gone, its disk is full, or it was closed from
/// the beginning.
namespace kvstore::testing {
namespace {

using Json = nlohmann::json;

class KvOutput : public KvProgram {
 protected:
  struct Ended {
    Exit exit;
    std::string err;
  };
  enum class To : uint8_t { kPipeWithoutReader, kFullDisk, kNothing };

  void SetUp() override {
    Ok({"dataset", "create", "events"});
    Ok({"dataset", "create", "pins", "--shape", "objects", "--type", "7"});
    Ok({"dataset", "create", "boards", "--shape", "mappings"});
    std::string lines;
    for (int i = 0; i < 2'000; ++i) {
      lines += Json{{"row", "r" + std::to_string(i)},
                    {"items", {{{"column", "x"}, {"value", std::string(100, 'v')}, {"timestamp", 1}}}}}
                   .dump() +
               "\n";
    }
    Ok({"import", "events"}, lines);
  }

  pid_t Start(To where, std::vector<std::string> arguments) const {
    const std::string err = (dir_ / "err").string();
    if (arguments[0] != "--server")
      arguments.insert(arguments.begin(), {"--data", (dir_ / "store").string()});
    arguments.insert(arguments.begin(), KV_PROGRAM);
    return Fork([&] {
      std::vector<char*> argv;
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      std::array<int, 2> ends{};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) return 126;
      ::dup2(where == To::kFullDisk ? ::open("/dev/full", O_WRONLY) : ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      if (where == To::kNothing) ::close(STDOUT_FILENO);
      ::execv(argv[0], argv.data());
      return 127;
    });
  }
  std::string Err() const {
    std::ifstream file(dir_ / "err");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Ended Run(To where, const std::vector<std::string>& arguments) const {
    const Exit exit = Wait(Start(where, arguments));
    return {exit, Err()};
  }

  /// Commands with short and long output, for people and as JSON.
  static std::vector<std::vector<std::string>> Commands() {
    return {{"get", "events", "r1"},
            {"get", "events", "r1", "--json"},
            {"scan", "events"},
            {"scan", "events", "--all"},
            {"scan", "events", "--all", "--json"},
            {"export", "events"},
            {"put", "events", "r1", "y=1"},
            {"dataset", "list"},
            {"dataset", "show", "events"},
            {"object", "create", "pins", "{}"},
            {"mapping", "count", "boards", "1"},
            {"compact", "events"},
            {"repair"},
            {"id", "encode", "3429", "1", "7075733"},
            {"completion", "bash"},
            {"token", "web", "--right", "*", "read"},
            {"--help"},
            {"scan", "--help"},
            {"--version"}};
  }
};

TEST_F(KvOutput, AReaderThatHasGoneEndsItQuietly) {
  for (const auto& command : Commands()) {
    const Ended ended = Run(To::kPipeWithoutReader, command);
    EXPECT_EQ(ended.exit.signal, SIGPIPE) << command[0] << " " << command[1 % command.size()];
    EXPECT_EQ(ended.err, "");
  }
}

TEST_F(KvOutput, AReaderOfTheFirstLineGetsIt) {
  const Output output = RunProgram({"bash", "-c",
                                    std::string(KV_PROGRAM) + " --data " + (dir_ / "store").string() +
                                        " scan events --all | head -n 1; exit ${PIPESTATUS[0]}"});
  EXPECT_EQ(output.code, 128 + SIGPIPE);
  EXPECT_TRUE(output.out.starts_with("ROW")) << output.out;
  EXPECT_EQ(output.err, "");
}

TEST_F(KvOutput, AFullDiskIsAnErrorThatSaysSo) {
  for (const auto& command : Commands()) {
    const Ended ended = Run(To::kFullDisk, command);
    EXPECT_EQ(ended.exit.code, 1) << command[0] << " " << command[1 % command.size()];
    EXPECT_NE(ended.err.find("cannot write to standard output: No space left on device"), std::string::npos)
        << command[0] << ": " << ended.err;
  }
  const Ended put = Run(To::kFullDisk, {"put", "events", "written", "y=1"});
  EXPECT_NE(put.err.find("may have made its changes"), std::string::npos) << put.err;
  EXPECT_NE(Ok({"get", "events", "written"}), "(none)\n");
  const Ended json = Run(To::kFullDisk, {"--json", "dataset", "list"});
  EXPECT_EQ(Json::parse(json.err)["error"]["code"], "RESOURCE_EXHAUSTED");
}

TEST_F(KvOutput, WhatFailedForAnotherReasonSaysThatFirst) {
  const Ended gone = Run(To::kPipeWithoutReader, {"object", "get", "pins", "352324757225473"});
  EXPECT_EQ(gone.exit.code, 1);
  EXPECT_NE(gone.err.find("NOT_FOUND"), std::string::npos) << gone.err;
}

// Otherwise a file of the store would get the descriptor of standard output, and receive the answer.
TEST_F(KvOutput, AClosedOutputHarmsNoFileOfTheStore) {
  for (const auto& command : Commands()) {
    const Ended ended = Run(To::kNothing, command);
    EXPECT_EQ(ended.exit.code, 1) << command[0];
    EXPECT_NE(ended.err.find("cannot write to standard output: Bad file descriptor"), std::string::npos)
        << command[0] << ": " << ended.err;
  }
  EXPECT_EQ(Run(To::kNothing, {"put", "events", "r1", "z=1", "--timestamp", "1"}).exit.code, 0)
      << "has nothing to say";
  EXPECT_NE(Ok({"get", "events", "r1", "z"}).find('z'), std::string::npos);
}

// Libraries open descriptors before main is reached.
TEST_F(KvOutput, AClosedInputCannotBeRead) {
  const std::string kv = std::string(KV_PROGRAM) + " --data " + (dir_ / "store").string();
  for (const char* command : {" exec", " import events"}) {
    const Output output = RunProgram({"sh", "-c", kv + command + " <&-"});
    EXPECT_EQ(output.code, 1);
    EXPECT_NE(output.err.find("cannot read the input: Bad file descriptor"), std::string::npos) << output.err;
  }
}

TEST_F(KvOutput, AnErrorThatNobodyCanReadIsAnExitCodeStill) {
  const std::string kv = std::string(KV_PROGRAM) + " --data " + (dir_ / "store").string();
  EXPECT_EQ(RunProgram({"sh", "-c", kv + " get none r 2> /dev/full"}).code, 1);
  EXPECT_EQ(RunProgram({"sh", "-c", kv + " get none r 2>&-"}).code, 1);
  EXPECT_EQ(RunProgram({"sh", "-c", kv + " nonsense 2> /dev/full"}).code, 2);
}

TEST_F(KvOutput, AServerServesWhetherOrNotItCanSayWhere) {
  for (const To where : {To::kFullDisk, To::kPipeWithoutReader, To::kNothing}) {
    const std::string socket = (dir_ / ("socket" + std::to_string(static_cast<int>(where)))).string();
    const std::string address = "unix:" + socket;
    const pid_t server = Start(where, {"serve", "--listen", address});
    // A client that connects too early would wait for long.
    while (!std::filesystem::exists(socket)) ASSERT_EQ(::kill(server, 0), 0) << Err();
    const auto served = [&] {
      return RunProgram({KV_PROGRAM, "--server", address, "get", "events", "r1", "x"}).code == 0;
    };
    while (!served()) ASSERT_EQ(::kill(server, 0), 0) << Err();
    // Prints figures for ever, with no reader.
    const pid_t stat = Start(To::kPipeWithoutReader, {"--server", address, "--json", "stat"});
    EXPECT_EQ(Wait(stat).signal, SIGPIPE);
    EXPECT_TRUE(served());
    ::kill(server, SIGTERM);
    EXPECT_EQ(Wait(server).code, 0);
  }
}

}  // namespace
}  // namespace kvstore::testing
