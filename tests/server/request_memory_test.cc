#include "server/request_memory.h"

#include <gtest/gtest.h>

#include "tests/support/eventually.h"

namespace kvstore::server {
namespace {

using State = RequestMemory::State;
using std::chrono::hours;
using std::chrono::milliseconds;

RequestMemory::Answer Text(const std::string& text) { return {absl::OkStatus(), text}; }

/// What Begin says of a request, which is not to begin.
State Look(RequestMemory& memory, const std::string& id, std::string* text = nullptr) {
  RequestMemory::Answer answer;
  const State state = memory.Begin(id, answer);
  if (state == State::kNew) memory.End(id, std::nullopt);
  if (text != nullptr) *text = answer.response;
  return state;
}

TEST(RequestMemory, GivesTheAnswerAgain) {
  RequestMemory memory(10, 1 << 20, hours(1));
  RequestMemory::Answer answer;
  EXPECT_EQ(memory.Begin("a", answer), State::kNew);
  EXPECT_EQ(Look(memory, "a"), State::kRunning);
  memory.End("a", Text("done"));
  std::string text;
  EXPECT_EQ(Look(memory, "a", &text), State::kAnswered);
  EXPECT_EQ(text, "done");
  EXPECT_EQ(Look(memory, "b"), State::kNew);
}

TEST(RequestMemory, WhatDidNothingMayBeginAgain) {
  RequestMemory memory(10, 1 << 20, hours(1));
  RequestMemory::Answer answer;
  EXPECT_EQ(memory.Begin("a", answer), State::kNew);
  memory.End("a", std::nullopt);
  EXPECT_EQ(memory.Begin("a", answer), State::kNew);
}

TEST(RequestMemory, IsBoundedInNumberAndBytes) {
  RequestMemory few(3, 1 << 20, hours(1));
  RequestMemory small(1000, 10'000, hours(1));
  for (int i = 0; i < 100; ++i) {
    for (RequestMemory* memory : {&few, &small}) {
      RequestMemory::Answer answer;
      ASSERT_EQ(memory->Begin(std::to_string(i), answer), State::kNew);
      memory->End(std::to_string(i), Text(std::string(1000, 'x')));
    }
  }
  EXPECT_EQ(few.size(), 3u);
  EXPECT_EQ(Look(few, "99"), State::kAnswered);
  EXPECT_EQ(Look(few, "96"), State::kNew);
  EXPECT_LT(small.size(), 10u);
  EXPECT_EQ(Look(small, "99"), State::kAnswered);
}

TEST(RequestMemory, KnowsWhatItMayHaveForgotten) {
  RequestMemory memory(3, 1 << 20, hours(1));
  RequestMemory::Answer answer;
  const auto add = [&](int n) {
    const std::string id = std::to_string(n);
    ASSERT_EQ(memory.Begin(id, answer), State::kNew);
    memory.End(id, Text("done"));
  };
  const auto begun = RequestMemory::Clock::now();
  const auto repeated = [&](const std::string& id, std::optional<RequestMemory::Clock::time_point> sent) {
    const State state = memory.Begin(id, answer, RequestMemory::Repeated{sent});
    if (state == State::kNew) memory.End(id, std::nullopt);
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
  // It was not begun.
  EXPECT_EQ(memory.Begin("x", answer), State::kNew);
}

TEST(RequestMemory, WhatIsForgottenWithTimeDoesNotBurdenAnOrdinaryRepetition) {
  RequestMemory memory(10, 1 << 20, milliseconds(1));
  RequestMemory::Answer answer;
  ASSERT_EQ(memory.Begin("a", answer), State::kNew);
  memory.End("a", Text("done"));
  ASSERT_TRUE(testing::Eventually([&] { return Look(memory, "b") == State::kNew && memory.size() == 0; }));
  EXPECT_EQ(memory.Begin("c", answer, RequestMemory::Repeated{}), State::kNew);
}

TEST(RequestMemory, ForgetsWithTime) {
  RequestMemory memory(10, 1 << 20, milliseconds(1));
  RequestMemory::Answer answer;
  ASSERT_EQ(memory.Begin("a", answer), State::kNew);
  memory.End("a", Text("done"));
  EXPECT_TRUE(testing::Eventually([&] { return Look(memory, "a") == State::kNew; }));
}

}  // namespace
}  // namespace kvstore::server
