#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "backend_api/prompt_scope.h"
#include "kvstore/v1/kvstore.grpc.pb.h"
#include "tests/server/gated_stream.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"

/// Puts that one message of a stream of calls has brought.
namespace kvstore {
namespace {

using testing::Eventually;
using testing::GatedStreamTest;
using testing::Migrates;

class PutsTogether : public GatedStreamTest {
 protected:
  static v1::Call& AddPut(v1::CallsRequest& request, uint64_t number, const std::string& dataset,
                          const std::string& row, const std::string& value) {
    v1::Call& call = *request.add_calls();
    call.set_number(number);
    v1::PutRowRequest& put = *call.mutable_put_row();
    put.set_dataset(dataset);
    put.set_row(row);
    v1::CellWrite& cell = *put.add_cells();
    cell.set_column("c");
    cell.set_value(value);
    return call;
  }
  static void AddGet(v1::CallsRequest& request, uint64_t number, const std::string& dataset,
                     const std::string& row) {
    v1::Call& call = *request.add_calls();
    call.set_number(number);
    call.mutable_get_row()->set_dataset(dataset);
    call.mutable_get_row()->set_row(row);
  }
};

TEST_F(PutsTogether, TheThreadThatReadsMakesThemInTheirOrderAndDoesNotWait) {
  std::atomic<int> prompt{0};
  gate_->Set([&](auto, auto) {
    if (IsPrompt()) ++prompt;
    return absl::OkStatus();
  });
  v1::CallsRequest request;
  for (uint64_t i = 0; i < 10; ++i) {
    AddPut(request, i, i % 2 == 0 ? "migrating" : "other", "r", std::to_string(i));
  }
  ASSERT_TRUE(stream_->Write(request));
  const auto answers = ReadAnswers(10);
  ASSERT_EQ(answers.size(), 10u);
  for (const auto& [number, answer] : answers) EXPECT_TRUE(answer.has_put_row()) << answer.DebugString();
  EXPECT_EQ(gate_->Done("migrating", "r"), (std::vector<std::string>{"0", "2", "4", "6", "8"}));
  EXPECT_EQ(gate_->Done("other", "r"), (std::vector<std::string>{"1", "3", "5", "7", "9"}));
  EXPECT_EQ(prompt, 10);
}

TEST_F(PutsTogether, ThoseThatWouldWaitAreMadeByAWorkerWhileTheStreamGoesOn) {
  absl::Notification may_go_on;
  gate_->Set([&](auto dataset, auto) {
    if (dataset != "migrating") return absl::OkStatus();
    if (IsPrompt()) return WouldWaitError();
    may_go_on.WaitForNotification();
    return absl::OkStatus();
  });
  v1::CallsRequest request;
  for (uint64_t i = 0; i < 5; ++i) AddPut(request, i, "migrating", "r", std::to_string(i));
  AddPut(request, 5, "other", "r", "v");
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_TRUE(ReadAnswers(1)[5].has_put_row());
  // The next message is read, and answered.
  request.Clear();
  AddGet(request, 6, "other", "r");
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_TRUE(ReadAnswers(1)[6].has_get_row());
  EXPECT_EQ(gate_->Done("migrating", "r").size(), 0u);
  may_go_on.Notify();
  const auto answers = ReadAnswers(5);
  ASSERT_EQ(answers.size(), 5u);
  for (const auto& [number, answer] : answers) EXPECT_TRUE(answer.has_put_row()) << answer.DebugString();
  EXPECT_EQ(gate_->Done("migrating", "r"), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
}

TEST_F(PutsTogether, AWriteThatIsHandedToAWorkerIsNotTakenForARepetitionOfItself) {
  gate_->Set([&](auto, auto) { return IsPrompt() ? WouldWaitError() : absl::OkStatus(); });
  v1::CallsRequest request;
  AddPut(request, 1, "other", "r", "v")
      .mutable_put_row()
      ->mutable_attempt()
      ->set_request_id("0123456789abcdef");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream_->Write(request));
    auto answers = ReadAnswers(1);
    EXPECT_TRUE(answers[1].has_put_row()) << answers[1].DebugString();
  }
  EXPECT_EQ(gate_->Done("other", "r").size(), 1u) << "the second one is the repetition";
}

TEST_F(PutsTogether, TwoWithOneRequestIdAreCarriedOutOnce) {
  v1::CallsRequest request;
  for (uint64_t i = 1; i <= 2; ++i) {
    AddPut(request, i, "other", "r", "v")
        .mutable_put_row()
        ->mutable_attempt()
        ->set_request_id("0123456789abcdef");
  }
  ASSERT_TRUE(stream_->Write(request));
  auto answers = ReadAnswers(2);
  EXPECT_TRUE(answers[1].has_put_row()) << answers[1].DebugString();
  EXPECT_TRUE(answers[2].has_put_row()) << answers[2].DebugString();
  EXPECT_EQ(gate_->Done("other", "r").size(), 1u);
}

TEST_F(PutsTogether, ThoseWhoseTimeEndsWhileOthersAreMadeAreNotMade) {
  constexpr auto kTimeout = std::chrono::milliseconds(50);
  constexpr uint64_t kPuts = 40;
  gate_->Set([&](auto, auto row) {
    if (row == "0") std::this_thread::sleep_for(kTimeout);
    return absl::OkStatus();
  });
  v1::CallsRequest request;
  for (uint64_t i = 0; i < kPuts; ++i) AddPut(request, i, "other", std::to_string(i), "v");
  request.mutable_calls(kPuts - 1)->set_timeout_us(std::chrono::microseconds(kTimeout).count());
  ASSERT_TRUE(stream_->Write(request));
  auto answers = ReadAnswers(kPuts);
  ASSERT_EQ(answers.size(), kPuts);
  EXPECT_EQ(answers[kPuts - 1].error().code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_TRUE(gate_->Done("other", std::to_string(kPuts - 1)).empty());
  for (uint64_t i = 0; i + 1 < kPuts; ++i) {
    EXPECT_TRUE(answers[i].has_put_row()) << answers[i].DebugString();
  }
}

TEST_F(PutsTogether, BehindPutsThatWouldWaitNoneIsMade) {
  std::atomic<int> prompt{0};
  gate_->Set([&](auto, auto) {
    if (!IsPrompt()) return absl::OkStatus();
    return ++prompt <= 32 ? WouldWaitError() : absl::OkStatus();
  });
  v1::CallsRequest request;
  for (uint64_t i = 0; i < 100; ++i) AddPut(request, i, "other", "r", std::to_string(i));
  ASSERT_TRUE(stream_->Write(request));
  auto answers = ReadAnswers(100);
  ASSERT_EQ(answers.size(), 100u);
  for (const auto& [number, answer] : answers) EXPECT_TRUE(answer.has_put_row()) << answer.DebugString();
  const auto done = gate_->Done("other", "r");
  ASSERT_EQ(done.size(), 100u);
  for (size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], std::to_string(i));
}

TEST_F(PutsTogether, ThoseOfADatasetThatMigratesAreHeldAndMadeInTheirOrder) {
  gate_->Set(Migrates("migrating"));
  v1::CallsRequest request;
  for (uint64_t i = 0; i < 5; ++i) AddPut(request, i, "migrating", "r", std::to_string(i));
  AddPut(request, 5, "other", "r", "v");
  ASSERT_TRUE(stream_->Write(request));
  EXPECT_TRUE(ReadAnswers(1)[5].has_put_row());
  ASSERT_TRUE(Eventually([&] { return gate_->refusals() > 0; }));
  gate_->Set(nullptr);
  const auto answers = ReadAnswers(5);
  ASSERT_EQ(answers.size(), 5u);
  for (const auto& [number, answer] : answers) EXPECT_TRUE(answer.has_put_row()) << answer.DebugString();
  EXPECT_EQ(gate_->Done("migrating", "r"), (std::vector<std::string>{"0", "1", "2", "3", "4"}));
}

TEST_F(PutsTogether, OneThatIsWrongFailsAlone) {
  v1::CallsRequest request;
  AddPut(request, 1, "other", "r", "v");
  AddPut(request, 2, "other", "", "a row needs a name");
  AddPut(request, 3, "none", "r", "v");
  AddPut(request, 4, "other", "r", "w");
  ASSERT_TRUE(stream_->Write(request));
  auto answers = ReadAnswers(4);
  EXPECT_TRUE(answers[1].has_put_row()) << answers[1].DebugString();
  EXPECT_EQ(answers[2].error().code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(answers[3].error().code(), grpc::NOT_FOUND);
  EXPECT_TRUE(answers[4].has_put_row()) << answers[4].DebugString();
  EXPECT_EQ(gate_->Done("other", "r"), (std::vector<std::string>{"v", "w"}));
}

}  // namespace
}  // namespace kvstore
