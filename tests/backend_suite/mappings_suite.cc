#include <fmt/format.h>

#include <map>
#include <string>
#include <thread>

#include "kvstore_api/limits.h"
#include "tests/backend_suite/suite.h"

namespace kvstore::testing {
namespace {

/// Returns the entries as text: "to@sequence to@sequence".
std::string List(MappingStore& mappings, uint64_t from, const MappingQuery& query = {.limit = 100}) {
  const auto list = mappings.List(from, query);
  EXPECT_OK(list);
  std::string text;
  if (!list.ok()) return text;
  for (const MappingEntry& entry : list->entries) {
    text += fmt::format("{}{}@{}", text.empty() ? "" : " ", entry.to, entry.sequence);
  }
  return text;
}

TEST_P(MappingsSuite, EntriesAreOrderedBySequenceThenTo) {
  const auto mappings = Mappings();
  EXPECT_EQ(List(*mappings, 1), "");
  EXPECT_EQ(*mappings->Count(1), 0u);
  ASSERT_OK(mappings->Add(1, 30, 5));
  ASSERT_OK(mappings->Add(1, 10, 9));
  ASSERT_OK(mappings->Add(1, 20, 5));
  ASSERT_OK(mappings->Add(2, 99, 1));
  ASSERT_OK(mappings->Add(1, kMaxId, kMaxTimestamp));
  ASSERT_OK(mappings->Add(1, 0, 0));
  EXPECT_EQ(List(*mappings, 1), "0@0 20@5 30@5 10@9 4611686018427387903@9223372036854775807");
  EXPECT_EQ(List(*mappings, 1, {.descending = true, .limit = 3}),
            "4611686018427387903@9223372036854775807 10@9 30@5");
  EXPECT_EQ(*mappings->Count(1), 5u);
  EXPECT_EQ(List(*mappings, 2), "99@1");
}

TEST_P(MappingsSuite, AddingAgainChangesTheSequence) {
  const auto mappings = Mappings();
  ASSERT_OK(mappings->Add(1, 10, 5));
  ASSERT_OK(mappings->Add(1, 20, 6));
  ASSERT_OK(mappings->Add(1, 10, 7));
  EXPECT_EQ(List(*mappings, 1), "20@6 10@7");
  EXPECT_EQ(*mappings->Count(1), 2u);
  ASSERT_OK(mappings->Add(1, 10, 7));
  EXPECT_EQ(*mappings->Count(1), 2u);
}

TEST_P(MappingsSuite, WithoutASequenceItIsTheTime) {
  const auto mappings = Mappings();
  ASSERT_OK(mappings->Add(1, 10, std::nullopt));
  ASSERT_OK(mappings->Add(1, 20, 1));
  ASSERT_OK_AND_ASSIGN(const MappingList list, mappings->List(1, {.limit = 10}));
  ASSERT_EQ(list.entries.size(), 2u);
  EXPECT_EQ(list.entries[0].to, 20u);
  EXPECT_GT(list.entries[1].sequence, 1'600'000'000'000u);
}

TEST_P(MappingsSuite, RemovingSaysWhetherThereWasOne) {
  const auto mappings = Mappings();
  ASSERT_OK(mappings->Add(1, 10, 5));
  ASSERT_OK_AND_ASSIGN(const bool there, mappings->Remove(1, 10));
  EXPECT_TRUE(there);
  ASSERT_OK_AND_ASSIGN(const bool again, mappings->Remove(1, 10));
  EXPECT_FALSE(again);
  EXPECT_EQ(List(*mappings, 1), "");
  EXPECT_EQ(*mappings->Count(1), 0u);
  ASSERT_OK(mappings->Add(1, 10, 3));
  EXPECT_EQ(List(*mappings, 1), "10@3");
}

TEST_P(MappingsSuite, PagesGoOnBehindAnEntryAlsoWhenItIsGone) {
  const auto mappings = Mappings();
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_OK(mappings->Add(1, i, i * 10));
  ASSERT_OK_AND_ASSIGN(const MappingList first, mappings->List(1, {.limit = 2}));
  EXPECT_TRUE(first.more);
  ASSERT_OK(mappings->Remove(1, 2));
  EXPECT_EQ(List(*mappings, 1, {.limit = 2, .after = first.entries.back()}), "3@30 4@40");
  EXPECT_EQ(List(*mappings, 1, {.descending = true, .limit = 9, .after = {{.to = 3, .sequence = 30}}}),
            "1@10");
  ASSERT_OK_AND_ASSIGN(const MappingList last,
                       mappings->List(1, {.limit = 2, .after = {{.to = 3, .sequence = 30}}}));
  EXPECT_EQ(last.entries.size(), 2u);
  // The page ends exactly at the last entry, so there is no next one.
  EXPECT_FALSE(last.more);
}

TEST_P(MappingsSuite, OffsetsSkipEntries) {
  const auto mappings = Mappings();
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_OK(mappings->Add(1, i, i));
  EXPECT_EQ(List(*mappings, 1, {.limit = 2, .offset = 3}), "4@4 5@5");
  EXPECT_EQ(List(*mappings, 1, {.descending = true, .limit = 2, .offset = 4}), "1@1");
  EXPECT_EQ(List(*mappings, 1, {.limit = 2, .offset = 5}), "");
  EXPECT_EQ(List(*mappings, 1, {.limit = 2, .offset = UINT64_MAX}), "");
}

TEST_P(MappingsSuite, ConcurrentChangesKeepTheCount) {
  const auto mappings = Mappings();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 200; ++i) {
        mappings->Add(1, i % 50, t * 1000 + i).IgnoreError();
        if (i % 3 == 0) mappings->Remove(1, (i + t) % 50).status().IgnoreError();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK_AND_ASSIGN(const MappingList list, mappings->List(1, {.limit = 1000}));
  EXPECT_EQ(*mappings->Count(1), list.entries.size());
}

TEST_P(MappingsSuite, ARandomHistoryIsThatOfASimpleModel) {
  auto mappings = Mappings();
  Random random(Seed("mappings"));
  std::map<uint64_t, std::map<uint64_t, uint64_t>> model;  // from -> to -> sequence
  for (int i = 0; i < 5000; ++i) {
    const uint64_t from = random.Below(4);
    const uint64_t to = random.Below(20);
    if (random.OneIn(3)) {
      ASSERT_EQ(*mappings->Remove(from, to), model[from].erase(to) == 1);
    } else {
      const uint64_t sequence = random.Below(10);
      ASSERT_OK(mappings->Add(from, to, sequence));
      model[from][to] = sequence;
    }
    if (random.OneIn(20)) GetParam().disturb(backend(), spec(), random);
    if (random.OneIn(1000)) {
      mappings.reset();
      Reopen();
      mappings = *backend().OpenMappings(spec());
    }
    if (!random.OneIn(10)) continue;
    std::map<std::pair<uint64_t, uint64_t>, int> ordered;
    for (const auto& [other, sequence] : model[from]) ordered[{sequence, other}] = 1;
    std::string expected;
    for (const auto& [key, unused] : ordered) {
      expected += fmt::format("{}{}@{}", expected.empty() ? "" : " ", key.second, key.first);
    }
    ASSERT_EQ(List(*mappings, from), expected);
    ASSERT_EQ(*mappings->Count(from), model[from].size());
  }
}

}  // namespace
}  // namespace kvstore::testing
