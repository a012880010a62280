#include "server/call/call_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>

#include "server/call/quota.h"

namespace kvstore::server {
namespace {

/// Collects what is logged while it lives.
class Collected {
 public:
  Collected() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)));
  }
  ~Collected() { spdlog::set_default_logger(before_); }
  Collected(const Collected&) = delete;
  Collected& operator=(const Collected&) = delete;

  std::string Text() const { return out_.str(); }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream out_;
};

TEST(LineLimit, LeavesOutWhatIsTooMuchForASecondAndTellsHowMuch) {
  LineLimit limit(2);
  LineLimit::Clock::time_point now{std::chrono::hours(1)};
  EXPECT_EQ(limit.Admit(now), 0u);
  now += std::chrono::milliseconds(999);
  EXPECT_EQ(limit.Admit(now), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(limit.Admit(now).has_value());
  now += std::chrono::milliseconds(1);
  EXPECT_EQ(limit.Admit(now), 3u);
  EXPECT_EQ(limit.Admit(now), 0u);
}

TEST(CallLog, WritesFewLinesOfBoundedLength) {
  const Collected collected;
  CallLog log(0);
  constexpr int kCalls = 10'000;
  const auto begun = std::chrono::steady_clock::now();
  const absl::Status status = absl::UnauthenticatedError(std::string(100'000, 'm'));
  for (int i = 0; i < kCalls; ++i) log.Write({.operation = "GetRow", .dataset = "d"}, status);
  const auto seconds = (std::chrono::steady_clock::now() - begun) / std::chrono::seconds(1);
  std::istringstream lines(collected.Text());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LT(line.size(), 2'000u);
  EXPECT_GE(count, 50);
  EXPECT_LE(count, 50 * (seconds + 1));
}

TEST(CallLog, WantsNoCallsThatFailedByTheirOwnArguments) {
  const CallLog log(500);
  const absl::Status mistake = absl::InvalidArgumentError("row: is empty");
  EXPECT_FALSE(log.Wants(0.1, mistake));
  EXPECT_FALSE(log.Wants(0.1, absl::NotFoundError("no such dataset")));
  EXPECT_TRUE(log.Wants(0.6, mistake)) << "it was slow";
  EXPECT_TRUE(log.Wants(0.1, absl::UnauthenticatedError("no token")));
  EXPECT_TRUE(log.Wants(0.1, absl::UnavailableError("a host is down")));
  EXPECT_TRUE(log.Wants(0.1, absl::ResourceExhaustedError("too many calls are in flight")));
}

TEST(CallLog, WantsNoCallsThatALimitOfTheirCallersTurnedAway) {
  Quota quota("caller 'web'");
  quota.Set({.max_calls = 1});
  EXPECT_FALSE(quota.Admit(0, Quota::Clock::now()));
  const auto refusal = quota.Admit(0, Quota::Clock::now());
  ASSERT_TRUE(refusal);
  EXPECT_FALSE(CallLog(500).Wants(0.1, quota.Error(*refusal)));
}

TEST(CallLog, MistakesOfCallersAreDetailsThatKeepNoOtherLineOut) {
  const Collected collected;
  spdlog::default_logger()->set_level(spdlog::level::debug);
  CallLog log(500);
  const absl::Status mistake = absl::InvalidArgumentError("row: is empty");
  ASSERT_TRUE(log.Wants(0.1, mistake));
  for (int i = 0; i < 1'000; ++i) log.Write({.operation = "GetRow", .seconds = 0.1}, mistake);
  log.Write({.operation = "GetRow", .seconds = 0.1}, absl::UnavailableError("a host is down"));
  log.Write({.operation = "GetRow", .seconds = 0.6}, mistake);
  std::istringstream lines(collected.Text());
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    const bool quick = line.find("\"ms\":100") != std::string::npos;
    const bool is_mistake = line.find("INVALID_ARGUMENT") != std::string::npos;
    const char* const level = !is_mistake ? "[warning]" : quick ? "[debug]" : "[info]";
    EXPECT_NE(line.find(level), std::string::npos) << line;
    all += line;
  }
  EXPECT_NE(all.find("[debug]"), std::string::npos);
  EXPECT_NE(all.find("a host is down"), std::string::npos) << "pushed out by the mistakes";
  EXPECT_NE(all.find("[info]"), std::string::npos);
}

TEST(CallLog, NoTerminalActsOnALine) {
  const Collected collected;
  CallLog log(0);
  log.Write({.operation = "GetRow", .dataset = "x\x1b[31m\u009b31m"}, absl::InternalError("y\u202e\x7f\xff"));
  const std::string text = collected.Text();
  EXPECT_NE(text.find("\\u009b31m"), std::string::npos) << text;
  EXPECT_NE(text.find("y\\u202e"), std::string::npos) << text;
  for (const char* obeyed : {"\x1b", "\u009b", "\u202e", "\x7f"})
    EXPECT_EQ(text.find(obeyed), std::string::npos);
}

}  // namespace
}  // namespace kvstore::server
