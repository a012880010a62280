#include "server/call/request_memory.h"

#include <gtest/gtest.h>

#include "tests/support/eventually.h"

namespace kvstore::server {
namespace {

using State = RequestMemory::State;
using std::chrono::hours;
using std::chrono::milliseconds;

constexpr char kCaller[] = "caller";

RequestMemory::Answer Text(const std::string& text) {
  return {.status = absl::OkStatus(), .response = text, .partial = false};
}

/// Bounds of which one caller may have everything.
RequestMemory::Bounds Most(size_t answers, size_t bytes, milliseconds age) {
  return {.answers = answers, .bytes = bytes, .answers_each = answers, .bytes_each = bytes, .age = age};
}

/// Returns what Begin says of a request, without leaving it begun.
State Peek(RequestMemory& memory, const std::string& id, std::string* text = nullptr) {
  RequestMemory::Answer answer;
  const State state = memory.Begin(kCaller, id, answer);
  if (state == State::kNew) memory.End(kCaller, id, std::nullopt);
  if (text != nullptr) *text = answer.response;
  return state;
}

TEST(RequestMemory, GivesTheAnswerAgain) {
  RequestMemory memory(Most(10, 1 << 20, hours(1)));
  RequestMemory::Answer answer;
  EXPECT_EQ(memory.Begin(kCaller, "a", answer), State::kNew);
  EXPECT_EQ(Peek(memory, "a"), State::kRunning);
  memory.End(kCaller, "a", Text("done"));
  std::string text;
  EXPECT_EQ(Peek(memory, "a", &text), State::kAnswered);
  EXPECT_EQ(text, "done");
  EXPECT_EQ(Peek(memory, "b"), State::kNew);
}

TEST(RequestMemory, WhatDidNothingMayBeginAgain) {
  RequestMemory memory(Most(10, 1 << 20, hours(1)));
  RequestMemory::Answer answer;
  EXPECT_EQ(memory.Begin(kCaller, "a", answer), State::kNew);
  memory.End(kCaller, "a", std::nullopt);
  EXPECT_EQ(memory.Begin(kCaller, "a", answer), State::kNew);
}

TEST(RequestMemory, IsBoundedInNumberAndBytes) {
  RequestMemory few(Most(3, 1 << 20, hours(1)));
  RequestMemory small(Most(1000, 10'000, hours(1)));
  for (int i = 0; i < 100; ++i) {
    for (RequestMemory* memory : {&few, &small}) {
      RequestMemory::Answer answer;
      ASSERT_EQ(memory->Begin(kCaller, std::to_string(i), answer), State::kNew);
      memory->End(kCaller, std::to_string(i), Text(std::string(1000, 'x')));
    }
  }
  EXPECT_EQ(few.size(), 3u);
  EXPECT_EQ(Peek(few, "99"), State::kAnswered);
  EXPECT_EQ(Peek(few, "96"), State::kNew);
  EXPECT_LT(small.size(), 10u);
  EXPECT_EQ(Peek(small, "99"), State::kAnswered);
}

TEST(RequestMemory, KnowsWhatItMayHaveForgotten) {
  RequestMemory memory(Most(3, 1 << 20, hours(1)));
  RequestMemory::Answer answer;
  const auto add = [&](int n) {
    const std::string id = std::to_string(n);
    ASSERT_EQ(memory.Begin(kCaller, id, answer), State::kNew);
    memory.End(kCaller, id, Text("done"));
  };
  const auto begun = RequestMemory::Clock::now();
  const auto repeated = [&](const std::string& id, std::optional<RequestMemory::Clock::time_point> sent) {
    const State state = memory.Begin(kCaller, id, answer, RequestMemory::Repeated{sent});
    if (state == State::kNew) memory.End(kCaller, id, std::nullopt);
    return state;
  };
  for (int i = 0; i < 3; ++i) add(i);
  EXPECT_EQ(repeated("x", begun), State::kNew) << "nothing was forgotten yet";
  EXPECT_EQ(repeated("x", std::nullopt), State::kNew);
  EXPECT_EQ(repeated("0", begun), State::kAnswered);
  for (int i = 3; i < 9; ++i) add(i);
  EXPECT_EQ(repeated("0", begun), State::kForgotten);
  EXPECT_EQ(repeated("x", begun), State::kForgotten);
  EXPECT_EQ(repeated("x", std::nullopt), State::kForgotten);
  EXPECT_EQ(repeated("8", begun), State::kAnswered);
  EXPECT_EQ(repeated("x", RequestMemory::Clock::now()), State::kNew);
  // kForgotten does not begin the request.
  EXPECT_EQ(memory.Begin(kCaller, "x", answer), State::kNew);
}

TEST(RequestMemory, WhatIsForgottenWithTimeDoesNotBurdenAnOrdinaryRepetition) {
  RequestMemory memory(Most(10, 1 << 20, milliseconds(1)));
  RequestMemory::Answer answer;
  ASSERT_EQ(memory.Begin(kCaller, "a", answer), State::kNew);
  memory.End(kCaller, "a", Text("done"));
  ASSERT_TRUE(testing::Eventually([&] { return Peek(memory, "b") == State::kNew && memory.size() == 0; }));
  EXPECT_EQ(memory.Begin(kCaller, "c", answer, RequestMemory::Repeated{}), State::kNew);
}

TEST(RequestMemory, ACallerPushesOutItsOwnAnswersFirst) {
  RequestMemory memory(
      {.answers = 10, .bytes = 1 << 20, .answers_each = 5, .bytes_each = 1 << 19, .age = hours(1)});
  const auto add = [&](const std::string& caller, int n) {
    RequestMemory::Answer answer;
    ASSERT_EQ(memory.Begin(caller, std::to_string(n), answer), State::kNew);
    memory.End(caller, std::to_string(n), Text("done"));
  };
  const auto peek = [&](const std::string& caller, int n) {
    RequestMemory::Answer answer;
    const State state = memory.Begin(caller, std::to_string(n), answer, RequestMemory::Repeated{});
    if (state == State::kNew) memory.End(caller, std::to_string(n), std::nullopt);
    return state;
  };
  add("quiet", 0);
  for (int i = 0; i < 100; ++i) add("busy", i);
  EXPECT_EQ(peek("quiet", 0), State::kAnswered);
  EXPECT_EQ(peek("quiet", 1), State::kNew) << "of its own nothing was forgotten";
  EXPECT_EQ(peek("busy", 1), State::kForgotten);
  EXPECT_EQ(memory.size(), 6u);
  // With a third caller there are too many answers of all together, and the caller with most of them loses
  // some.
  for (int i = 0; i < 100; ++i) add("another", i);
  EXPECT_EQ(memory.size(), 10u);
  EXPECT_EQ(peek("quiet", 0), State::kAnswered);
  EXPECT_EQ(peek("busy", 99), State::kAnswered);
  EXPECT_EQ(peek("another", 99), State::kAnswered);
}

TEST(RequestMemory, ForgetsWithTime) {
  RequestMemory memory(Most(10, 1 << 20, milliseconds(1)));
  RequestMemory::Answer answer;
  ASSERT_EQ(memory.Begin(kCaller, "a", answer), State::kNew);
  memory.End(kCaller, "a", Text("done"));
  EXPECT_TRUE(testing::Eventually([&] { return Peek(memory, "a") == State::kNew; }));
}

}  // namespace
}  // namespace kvstore::server
