#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <thread>

#include "backend_api/batch_bytes.h"
#include "backend_api/scan_budget.h"
#include "idgen/object_id.h"
#include "tests/backend_suite/suite.h"

namespace kvstore::testing {
namespace {

constexpr auto kNotFound = absl::StatusCode::kNotFound;

ObjectTransform To(const std::string& text) {
  return [text](std::string_view) -> absl::StatusOr<std::string> { return text; };
}

TEST_P(ObjectsSuite, AnObjectComesBackByItsId) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"title":"a chair"})", {}));
  ASSERT_OK_AND_ASSIGN(const ObjectId parts, ObjectId::FromValue(id));
  EXPECT_EQ(parts.type(), spec().type);
  ASSERT_OK_AND_ASSIGN(const Object object, objects->Get(id, {}));
  EXPECT_EQ(object.id, id);
  EXPECT_EQ(object.data, R"({"title":"a chair"})");
  EXPECT_GT(object.timestamp, 0u);
  EXPECT_THAT(objects->Get(id + 1000, {}), FailsWith(kNotFound, std::to_string(id + 1000)));
}

TEST_P(ObjectsSuite, AnObjectLivesWhereItsCreatorSays) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t on_shard, objects->Create("{}", {.shard = 3}));
  EXPECT_EQ(ObjectId::FromValue(on_shard)->shard(), 3u);
  ASSERT_OK_AND_ASSIGN(const uint64_t near, objects->Create("{}", {.near = on_shard}));
  EXPECT_EQ(ObjectId::FromValue(near)->shard(), 3u);
  EXPECT_NE(near, on_shard);
}

TEST_P(ObjectsSuite, IdsAreNeverGivenTwice) {
  auto objects = Objects();
  std::set<uint64_t> ids;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) {
      ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {.shard = 1}));
      EXPECT_TRUE(ids.insert(id).second);
      // An ID is not assigned again after its object was erased, either.
      ASSERT_OK(objects->Erase(id));
    }
    objects.reset();
    Reopen();
    objects = *backend().OpenObjects(spec());
  }
}

TEST_P(ObjectsSuite, ACreateThatIsRepeatedMakesOneObject) {
  auto objects = Objects();
  const CreateOptions first{.request_id = "0123456789abcdef"};
  const CreateOptions second{.request_id = std::string(15, '\0') + "\xFF"};
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"n":1})", first));
  EXPECT_EQ(*objects->Create(R"({"n":2})", first), id);
  ASSERT_OK_AND_ASSIGN(const uint64_t other, objects->Create("{}", second));
  EXPECT_NE(other, id);
  // A process that is started later remembers the requests, too.
  objects.reset();
  Reopen();
  objects = *backend().OpenObjects(spec());
  EXPECT_EQ(*objects->Create("{}", first), id);
  EXPECT_EQ(*objects->Create("{}", second), other);
  EXPECT_EQ(objects->Get(id, {})->data, R"({"n":1})");
  EXPECT_NE(*objects->Create("{}", {}), *objects->Create("{}", {}));
}

TEST_P(ObjectsSuite, RepetitionsAtOnceMakeOneObject) {
  const auto objects = Objects();
  for (int round = 0; round < 20; ++round) {
    const CreateOptions options{.request_id = "request " + std::to_string(10'000'000 + round)};
    std::vector<uint64_t> ids(4);
    std::vector<std::thread> threads;
    for (uint64_t& id : ids) {
      threads.emplace_back([&] {
        // A server may answer that the attempt before has not ended yet.
        for (absl::StatusOr<uint64_t> made = absl::UnavailableError("");
             absl::IsUnavailable(made.status());) {
          made = objects->Create("{}", options);
          id = made.value_or(0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_NE(ids[0], 0u);
    for (const uint64_t id : ids) EXPECT_EQ(id, ids[0]);
  }
}

TEST_P(ObjectsSuite, ConcurrentCreatesGetDifferentIds) {
  const auto objects = Objects();
  std::vector<std::vector<uint64_t>> ids(4);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) mine.push_back(objects->Create("{}", {.shard = 1}).value_or(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> distinct;
  for (const auto& mine : ids) distinct.insert(mine.begin(), mine.end());
  EXPECT_EQ(distinct.size(), 800u);
  EXPECT_FALSE(distinct.contains(0));
}

TEST_P(ObjectsSuite, UpdatesReturnWhatTheyWrote) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"n":1})", {}));
  ASSERT_OK_AND_ASSIGN(const Object first, objects->Get(id, {}));
  std::string seen;
  ASSERT_OK_AND_ASSIGN(const Object updated,
                       objects->Update(id,
                                       [&seen](std::string_view current) -> absl::StatusOr<std::string> {
                                         seen = current;
                                         return R"({"n":2})";
                                       },
                                       {}));
  EXPECT_EQ(seen, R"({"n":1})");
  EXPECT_EQ(updated.data, R"({"n":2})");
  EXPECT_GT(updated.timestamp, first.timestamp);
  ASSERT_OK_AND_ASSIGN(const Object read, objects->Get(id, {}));
  EXPECT_EQ(read.data, updated.data);
  EXPECT_EQ(read.timestamp, updated.timestamp);
}

TEST_P(ObjectsSuite, UpdatesCanExpectAVersion) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {}));
  ASSERT_OK_AND_ASSIGN(const Object object, objects->Get(id, {}));
  ASSERT_OK(objects->Update(id, To(R"({"a":1})"), {.expected_timestamp = object.timestamp}));
  EXPECT_THAT(objects->Update(id, To(R"({"a":2})"), {.expected_timestamp = object.timestamp}),
              FailsWith(absl::StatusCode::kFailedPrecondition, ""));
  EXPECT_EQ(objects->Get(id, {})->data, R"({"a":1})");
}

TEST_P(ObjectsSuite, ATransformThatFailsChangesNothing) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {}));
  const auto refuse = [](std::string_view) -> absl::StatusOr<std::string> {
    return absl::AbortedError("no");
  };
  EXPECT_THAT(objects->Update(id, refuse, {}), FailsWith(absl::StatusCode::kAborted, "no"));
  EXPECT_EQ(objects->Get(id, {})->data, "{}");
  EXPECT_THAT(objects->Update(id + 1000, To("{}"), {}), FailsWith(kNotFound, ""));
}

TEST_P(ObjectsSuite, ConcurrentUpdatesLoseNone) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"n":0})", {}));
  const auto increment = [](std::string_view current) -> absl::StatusOr<std::string> {
    return R"({"n":)" + std::to_string(std::stoi(std::string(current.substr(5))) + 1) + "}";
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) EXPECT_OK(objects->Update(id, increment, {}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(objects->Get(id, {})->data, R"({"n":400})");
}

TEST_P(ObjectsSuite, InactiveObjectsAreHiddenUnlessAskedFor) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create(R"({"a":1})", {}));
  ASSERT_OK(objects->Update(id, To(R"({"a":1,"active":false})"), {}));
  EXPECT_THAT(objects->Get(id, {}), FailsWith(kNotFound, ""));
  EXPECT_THAT(objects->Update(id, To("{}"), {}), FailsWith(kNotFound, ""));
  EXPECT_EQ(objects->Get(id, {.include_inactive = true})->data, R"({"a":1,"active":false})");
  ASSERT_OK(objects->Update(id, To(R"({"a":2,"active":true})"), {.include_inactive = true}));
  EXPECT_EQ(objects->Get(id, {})->data, R"({"a":2,"active":true})");
  // The name of the field, spelled with an escape.
  ASSERT_OK(objects->Update(id, To(R"({"\u0061ctive":false})"), {}));
  EXPECT_THAT(objects->Get(id, {}), FailsWith(kNotFound, ""));
}

TEST_P(ObjectsSuite, ErasedObjectsAreGone) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t id, objects->Create("{}", {}));
  ASSERT_OK(objects->Erase(id));
  EXPECT_THAT(objects->Get(id, {.include_inactive = true}), FailsWith(kNotFound, ""));
  EXPECT_THAT(objects->Erase(id), FailsWith(kNotFound, ""));
}

TEST_P(ObjectsSuite, BatchesAnswerInOrder) {
  const auto objects = Objects();
  ASSERT_OK_AND_ASSIGN(const uint64_t a, objects->Create(R"({"a":1})", {.shard = 1}));
  ASSERT_OK_AND_ASSIGN(const uint64_t b, objects->Create(R"({"b":1})", {.shard = 2}));
  const std::vector<uint64_t> ids = {b, a + 1000, a, b};
  const auto results = objects->GetMany(ids, {});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0]->data, R"({"b":1})");
  EXPECT_THAT(results[1], FailsWith(kNotFound, ""));
  EXPECT_EQ(results[2]->data, R"({"a":1})");
  EXPECT_EQ(results[3]->id, b);
}

TEST_P(ObjectsSuite, AFullBatchHasItsFirstObject) {
  const auto objects = Objects();
  const std::string megabyte = R"({"a":")" + std::string(1'000'000, 'x') + R"("})";
  std::vector<uint64_t> ids;
  for (uint32_t i = 0; i < 8; ++i) {
    ids.push_back(*objects->Create(megabyte, {.shard = i % 2 == 0 ? 1 : 2}));
  }
  // Engines that read in the order of IDs come to the first one last.
  std::sort(ids.rbegin(), ids.rend());
  ids.push_back(ids.front());
  const SmallBatches small(1'500'000);
  for (std::span<const uint64_t> left(ids); !left.empty();) {
    const auto results = objects->GetMany(left, {});
    ASSERT_EQ(results.size(), left.size());
    ASSERT_OK(results.front());
    EXPECT_EQ(results.front()->id, left.front());
    EXPECT_EQ(results.front()->data, megabyte);
    size_t read = 0;
    for (const auto& result : results) {
      if (result.ok()) {
        ++read;
      } else {
        EXPECT_TRUE(IsPaused(result.status())) << result.status();
      }
    }
    // Two of each of two shards, which may be read at the same time, and the first one.
    EXPECT_LE(read, 5u);
    left = left.subspan(1);
  }
}

}  // namespace
}  // namespace kvstore::testing
