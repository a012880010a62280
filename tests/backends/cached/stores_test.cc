#include "backends/cached/stores.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend_api/batch_bytes.h"
#include "tests/backends/cached/cached_under_test.h"
#include "tests/backends/toy/toy_backend.h"
#include "tests/support/status_matchers.h"

/// Objects and mappings through caches beside the same without, in whatever state the caches are.
namespace kvstore::testing {
namespace {

const bool kSharedCaches = ShareCacheFleet();

/// A toy backend, and caches in front of the same data.
class CachedStores : public ::testing::Test {
 protected:
  void SetUp() override {
    under_test_.open = [this](const auto&, auto) -> absl::StatusOr<std::unique_ptr<Backend>> {
      return OpenToyBackend(disk_);
    };
    ASSERT_OK_AND_ASSIGN(cached_, Cached(under_test_).open(dir_.path(), {}));
    plain_ = OpenToyBackend(disk_);
  }
  cached::CacheStats& Stats(bool objects) {
    auto& caches = dynamic_cast<CachedBackend&>(*cached_).caches();
    return (objects ? caches.objects() : caches.mappings()).stats();
  }

  const TempDir dir_;
  const std::shared_ptr<ToyDisk> disk_ = std::make_shared<ToyDisk>();
  UnderTest under_test_{.name = "toy"};
  std::unique_ptr<Backend> cached_;
  std::unique_ptr<Backend> plain_;
};

std::string Text(const absl::StatusOr<Object>& object) {
  return object.ok() ? std::to_string(object->id) + object->data + std::to_string(object->timestamp)
                     : absl::StatusCodeToString(object.status().code());
}

TEST_F(CachedStores, BatchesAreThoseOfTheBackend) {
  const DatasetSpec spec{.name = "o", .shape = Shape::kObjects, .backend = "b", .type = 1, .incarnation = 1};
  ASSERT_OK(cached_->CreateDataset(spec));
  const auto cached = *cached_->OpenObjects(spec);
  const auto plain = *plain_->OpenObjects(spec);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 150; ++i) {
    const std::string data = i % 7 == 0
                                 ? R"({"active":false})"
                                 : "{\"n\":" + std::to_string(i) + ",\"s\":\"" + std::string(i, 'x') + "\"}";
    ids.push_back(*cached->Create(data, {}));
    if (i % 5 == 0) ids.push_back(ids.back() + 100'000);  // there is none
    if (i % 11 == 0) ids.push_back(ids.front());
    if (i % 3 == 0) {
      cached->Get(ids.back(), {}).status().IgnoreError();
    }
  }
  for (const bool inactive : {false, true}) {
    for (const size_t most : {size_t{500}, size_t{5'000}, size_t{1} << 20}) {
      const SmallBatches small(most);
      for (int round = 0; round < 2; ++round) {
        const auto ours = cached->GetMany(ids, {.include_inactive = inactive});
        ASSERT_EQ(ours.size(), ids.size());
        EXPECT_FALSE(absl::IsResourceExhausted(ours.front().status()));
        size_t full = 0;
        for (size_t i = 0; i < ids.size(); ++i) {
          // Which entries find room may differ, what is in them may not.
          if (absl::IsResourceExhausted(ours[i].status())) {
            ++full;
          } else {
            EXPECT_EQ(Text(ours[i]), Text(plain->Get(ids[i], {.include_inactive = inactive})));
          }
        }
        EXPECT_EQ(full == 0, most == size_t{1} << 20) << full;
      }
    }
  }
  EXPECT_GT(Stats(/*objects=*/true).hits, ids.size());
}

TEST_F(CachedStores, ListsAreThoseOfTheBackend) {
  const DatasetSpec spec{.name = "m", .shape = Shape::kMappings, .backend = "b", .incarnation = 2};
  ASSERT_OK(cached_->CreateDataset(spec));
  const auto cached = *cached_->OpenMappings(spec);
  const auto plain = *plain_->OpenMappings(spec);
  constexpr uint32_t kMost = cached::CachedMappingStore::kCachedEntries;
  for (const uint32_t size : {0U, 1U, kMost - 1, kMost, kMost + 1, 3 * kMost}) {
    const uint64_t from = 1000 + size;
    for (uint64_t to = 1; to <= size; ++to) ASSERT_OK(cached->Add(from, to, to * 10));
    for (const bool descending : {false, true}) {
      for (const uint32_t limit : {1U, 10U, kMost - 1, kMost, kMost + 1, 1000U}) {
        for (const uint64_t offset : {0U, 1U, kMost - 10, kMost - 1, kMost, 2 * kMost}) {
          const MappingQuery query{.descending = descending, .limit = limit, .offset = offset, .after = {}};
          for (int round = 0; round < 2; ++round) {
            const auto ours = cached->List(from, query);
            const auto theirs = plain->List(from, query);
            ASSERT_OK(ours);
            ASSERT_EQ(ours->entries, theirs->entries) << size << " " << limit << " " << offset;
            ASSERT_EQ(ours->more, theirs->more) << size << " " << limit << " " << offset;
          }
        }
      }
    }
    EXPECT_EQ(cached->Count(from).value_or(9999), size);
    EXPECT_EQ(cached->Count(from).value_or(9999), size);
  }
  EXPECT_GT(Stats(/*objects=*/false).hits, 100U);
}

}  // namespace
}  // namespace kvstore::testing
