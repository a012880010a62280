#include "tests/shardops/advice_fixture.h"

#include <cstdio>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "shardops/map_history.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<std::string> CommandsIn(const std::string& text) {
  static const std::regex kCommand(R"(kv (shards (?:fence|promote|replace-slave|init|undo|move(?= --)))"
                                   R"((?: (?:--[a-z][a-z-]*|[0-9](?:[0-9.:,-]*[0-9])?))*))");
  std::vector<std::string> commands;
  for (std::sregex_iterator found(text.begin(), text.end(), kCommand), end; found != end; ++found) {
    commands.push_back((*found)[1]);
  }
  return commands;
}

std::vector<ProposedSql> SqlIn(const std::string& text) {
  // A statement goes on after "; " if another one follows there, and after ", " with the next variable.
  static const std::regex kSql(
      R"((?:STOP (?:ALL )?SLAVES?|START SLAVE(?: SQL_THREAD)?|RESET SLAVE ALL|KILL [0-9]+|RENAME TABLE \S+ TO `[^`]+`\.`[^`]+`|)"
      R"(SET GLOBAL [a-z_]+ = [A-Za-z0-9']+(?:, [a-z_]+ = [A-Za-z0-9']+)*)(?:; (?=[A-Z]{3}))?)");
  static const std::regex kHost(R"(127\.0\.0\.1:[0-9]+)");
  std::vector<ProposedSql> all;
  std::istringstream lines(text);
  std::string host;
  for (std::string line; std::getline(lines, line);) {
    // A line without a host belongs to the one before: "HOST: ...\nMend that, START SLAVE there".
    if (std::smatch found; std::regex_search(line, found, kHost)) host = found[0];
    size_t last_end = std::string::npos;
    for (std::sregex_iterator found(line.begin(), line.end(), kSql), end; found != end; ++found) {
      const auto at = static_cast<size_t>(found->position());
      if (at == last_end) {
        all.back().statement += (*found)[0];
      } else {
        all.push_back({host, (*found)[0]});
      }
      last_end = at + static_cast<size_t>(found->length());
    }
  }
  return all;
}

std::vector<std::string> WordsOf(const std::string& command) {
  std::istringstream words(command);
  return {std::istream_iterator<std::string>(words), {}};
}

AdviceFixture::AdviceFixture() {
  pair_.WriteConfig(dir_ / "kv.json");
  EXPECT_OK(shardops::PrepareHistory(pair_.fleet().zookeeper, pair_.fleet().root));
  Run({"shards", "init"});
}

void AdviceFixture::MakeDatasets() {
  Run({"dataset", "create", "events"});
  Run({"dataset", "create", "pins", "--shape", "objects"});
  Put();
}

Output AdviceFixture::Kv(std::vector<std::string> arguments, const std::string& input) const {
  arguments.insert(arguments.begin(), {KV_PROGRAM, "--config", (dir_ / "kv.json").string()});
  return RunProgram(arguments, input);
}

void AdviceFixture::Run(const std::vector<std::string>& arguments) const {
  const Output output = Kv(arguments);
  EXPECT_EQ(output.code, 0) << ::testing::PrintToString(arguments) << ": " << output.err;
}

void AdviceFixture::Put() {
  std::string requests;
  for (int i = 0; i < 40; ++i, ++rows_) {
    requests += fmt::format(
        R"({{"op":"put_row","dataset":"events","row":"r{0}","items":[{{"column":"c","value":"{0}"}}]}})"
        "\n",
        rows_);
  }
  const std::string answers = Kv({"exec"}, requests).out;
  EXPECT_EQ(answers.find("\"ok\":false"), std::string::npos) << answers;
}

void AdviceFixture::ExpectAll() const {
  std::string requests;
  for (int row = 0; row < rows_; ++row) {
    requests += fmt::format(R"({{"op":"get_row","dataset":"events","row":"r{}"}})"
                            "\n",
                            row);
  }
  std::istringstream answers(Kv({"exec"}, requests).out);
  int row = 0;
  for (std::string line; std::getline(answers, line); ++row) {
    EXPECT_NE(line.find(fmt::format("\"value\":\"{}\"", row)), std::string::npos) << line;
  }
  EXPECT_EQ(row, rows_);
}

std::string AdviceFixture::Inspect() const {
  std::string said;
  for (const char* const command : {"status", "check"}) {
    const Output output = Kv({"shards", command});
    if (output.code != 0) said += output.out + output.err;
  }
  return said;
}

void AdviceFixture::RunSql(const ProposedSql& proposed) {
  std::vector<MariaDbServer*> servers = {&pair_.a(), &pair_.b()};
  servers.insert(servers.end(), others_.begin(), others_.end());
  for (MariaDbServer* const server : servers) {
    if (server->address() != proposed.host) continue;
    try {
      server->Run(proposed.statement);
    } catch (const std::runtime_error& error) {
      // As where what was to be ended has ended by itself.
      std::printf("%s: %s\n", proposed.statement.c_str(), error.what());
    }
    return;
  }
  ADD_FAILURE() << proposed.statement << " is for a host that is none: " << proposed.host;
}

void AdviceFixture::FollowAdvice() {
  const auto proposes = [](const std::string& text) {
    return !CommandsIn(text).empty() || !SqlIn(text).empty();
  };
  std::string said;
  for (int step = 0; step < 12; ++step) {
    // The last step's output is followed first. If it proposes nothing, status and check are asked until they
    // propose something, or find no problem: some problems disappear by themselves.
    if (!proposes(said)) {
      EXPECT_TRUE(Eventually([&] {
        said = Inspect();
        return said.empty() || proposes(said);
      })) << said;
      if (said.empty()) return;
    }
    if (const auto sql = SqlIn(said); !sql.empty()) {
      // Each once, though status and check both say it.
      steps_.push_back(sql.front().statement);
      std::printf("%s> %s\n", sql.front().host.c_str(), sql.front().statement.c_str());
      RunSql(sql.front());
      said.clear();
      continue;
    }
    const std::vector<std::string> commands = CommandsIn(said);
    ASSERT_FALSE(commands.empty()) << said;
    steps_.push_back(commands.front());
    std::vector<std::string> arguments = WordsOf(commands.front());
    if (arguments.at(1) == "undo") arguments.emplace_back("--yes");
    const Output output = Kv(arguments);
    said = output.out + output.err;
    std::printf("kv %s\n%s", commands.front().c_str(), said.c_str());
  }
  ADD_FAILURE() << "it goes on and on: " << ::testing::PrintToString(steps_) << "\n" << said;
}

void AdviceFixture::BreakAndFollowAdvice(const std::string& what, const std::function<void()>& breaks,
                                         const std::string& proposed) {
  SCOPED_TRACE(what);
  EXPECT_TRUE(Eventually([&] { return Inspect().empty(); })) << Inspect();
  steps_.clear();
  breaks();
  // It takes a moment until the hosts notice.
  EXPECT_TRUE(Eventually([&] {
    const std::string said = Inspect();
    return !CommandsIn(said).empty() || !SqlIn(said).empty();
  })) << Inspect();
  FollowAdvice();
  EXPECT_THAT(steps_, Contains(HasSubstr(proposed)));
  Put();
  ExpectAll();
}

}  // namespace kvstore::testing
