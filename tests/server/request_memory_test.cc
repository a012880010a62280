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

TEST(RequestMemory, ForgetsWithTime) {
  RequestMemory memory(10, 1 << 20, milliseconds(1));
  RequestMemory::Answer answer;
  ASSERT_EQ(memory.Begin("a", answer), State::kNew);
  memory.End("a", Text("done"));
  EXPECT_TRUE(testing::Eventually([&] { return Look(memory, "a") == State::kNew; }));
}

}  // namespace
}  // namespace kvstore::server
