#include "router/batch.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"

namespace kvstore {
namespace {

using Answer = absl::StatusOr<int>;

std::vector<Answer> Send(std::span<const int> entries, std::vector<int>* sent) {
  std::vector<absl::Status> problems;
  for (const int entry : entries) {
    problems.push_back(entry < 0 ? absl::InvalidArgumentError(std::to_string(entry)) : absl::OkStatus());
  }
  return SendValid<Answer>(entries, problems, [sent](std::span<const int> valid) {
    sent->assign(valid.begin(), valid.end());
    std::vector<Answer> answers;
    for (const int entry : valid) answers.push_back(entry * 10);
    return answers;
  });
}

TEST(SendValid, AnswersInOrderAndSendsOnlyWhatIsValid) {
  std::vector<int> sent;
  const std::vector<int> entries = {1, -2, 3, -4};
  const auto answers = Send(entries, &sent);
  EXPECT_EQ(sent, (std::vector<int>{1, 3}));
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(*answers[0], 10);
  EXPECT_EQ(answers[1].status(), absl::InvalidArgumentError("-2"));
  EXPECT_EQ(*answers[2], 30);
  EXPECT_EQ(answers[3].status(), absl::InvalidArgumentError("-4"));
}

TEST(SendValid, PassesOnWhatIsAllValidOrAllWrong) {
  std::vector<int> sent;
  const std::vector<int> right = {1, 2};
  EXPECT_EQ(*Send(right, &sent)[1], 20);
  const std::vector<int> wrong = {-1, -2};
  EXPECT_EQ(Send(wrong, &sent)[1].status(), absl::InvalidArgumentError("-2"));
  EXPECT_TRUE(sent.empty());
}

}  // namespace
}  // namespace kvstore
