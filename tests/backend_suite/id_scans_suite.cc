#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backend_api/scan_budget.h"
#include "idgen/object_id.h"
#include "kvstore_api/limits.h"
#include "tests/backend_suite/suite.h"

/// Scans of objects and of mappings.
namespace kvstore::testing {
namespace {

/// Reads all pages of a scan, and checks that each makes progress.
std::vector<Object> ScanAll(ObjectStore& objects, IdRange range = {}, const ObjectScanOptions& options = {}) {
  std::vector<Object> found;
  for (;;) {
    auto page = objects.Scan(range, options);
    EXPECT_OK(page);
    if (!page.ok()) return found;
    EXPECT_LE(page->objects.size(), options.limit);
    for (Object& object : page->objects) found.push_back(std::move(object));
    if (!page->next) return found;
    EXPECT_GT(*page->next, range.start);
    EXPECT_LT(*page->next, range.end);
    if (*page->next <= range.start) return found;
    range.start = *page->next;
  }
}

std::vector<uint64_t> IdsOf(const std::vector<Object>& objects) {
  std::vector<uint64_t> ids;
  for (const Object& object : objects) ids.push_back(object.id);
  return ids;
}

/// Creates objects on several shards, and returns their IDs in ascending order.
std::vector<uint64_t> Fill(ObjectStore& objects, int count) {
  std::vector<uint64_t> ids;
  for (int i = 0; i < count; ++i) {
    const auto id =
        objects.Create(R"({"n":)" + std::to_string(i) + "}", {.shard = static_cast<uint32_t>(i * 7 % 5)});
    EXPECT_OK(id);
    ids.push_back(id.value_or(0));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST_P(ObjectsSuite, AScanReturnsEachObjectOnceInTheOrderOfIds) {
  const auto objects = Objects();
  EXPECT_TRUE(ScanAll(*objects).empty());
  const std::vector<uint64_t> ids = Fill(*objects, 60);
  for (const uint32_t limit : {1, 7, 60, 1000}) {
    const std::vector<Object> found = ScanAll(*objects, {}, {.limit = limit});
    EXPECT_EQ(IdsOf(found), ids) << limit;
    for (const Object& object : found) {
      ASSERT_OK_AND_ASSIGN(const Object read, objects->Get(object.id, {}));
      EXPECT_EQ(object.data, read.data);
      EXPECT_EQ(object.timestamp, read.timestamp);
    }
  }
}

TEST_P(ObjectsSuite, AScanHasTheIdsOfItsRange) {
  const auto objects = Objects();
  const std::vector<uint64_t> ids = Fill(*objects, 20);
  const auto scan = [&](uint64_t start, uint64_t end) {
    return IdsOf(ScanAll(*objects, {start, end}, {.limit = 3}));
  };
  const auto some = [&](size_t first, size_t end) {
    return std::vector<uint64_t>(ids.begin() + static_cast<ptrdiff_t>(first),
                                 ids.begin() + static_cast<ptrdiff_t>(end));
  };
  EXPECT_EQ(scan(ids[3], ids[17]), some(3, 17));
  EXPECT_EQ(scan(ids[3] + 1, ids[3] + 2), some(0, 0));
  EXPECT_EQ(scan(0, ids[0]), some(0, 0));
  EXPECT_EQ(scan(ids[19], ids[19] + 1), some(19, 20));
  EXPECT_EQ(scan(ids[19] + 1, kMaxId + 1), some(0, 0));
  // Ends that are IDs of other types: below and above those of the dataset on the same shard.
  const uint32_t type = spec().type;
  EXPECT_EQ(scan(ObjectId::ValueOf(1, type - 1, 5), ObjectId::ValueOf(1, type + 1, 0)), some(4, 8));
  EXPECT_EQ(scan(ObjectId::ValueOf(1, type + 1, 0), ObjectId::ValueOf(3, type - 1, 7)), some(8, 12));
}

TEST_P(ObjectsSuite, AScanLeavesOutWhatIsDeleted) {
  const auto objects = Objects();
  const std::vector<uint64_t> ids = Fill(*objects, 10);
  ASSERT_OK(objects->Erase(ids[2]));
  const auto hide = [](std::string_view) -> absl::StatusOr<std::string> { return R"({"active":false})"; };
  ASSERT_OK(objects->Update(ids[4], hide, {}));
  ASSERT_OK(objects->Update(ids[9], hide, {}));
  for (const uint32_t limit : {1, 3, 100}) {
    EXPECT_EQ(IdsOf(ScanAll(*objects, {}, {.limit = limit})),
              (std::vector<uint64_t>{ids[0], ids[1], ids[3], ids[5], ids[6], ids[7], ids[8]}));
    EXPECT_EQ(ScanAll(*objects, {}, {.include_inactive = true, .limit = limit}).size(), 9u);
  }
}

TEST_P(ObjectsSuite, PagesOfAScanAreBoundedInBytes) {
  const auto objects = Objects();
  const auto document = [](size_t bytes) { return R"({"a":")" + std::string(bytes - 8, 'x') + "\"}"; };
  std::vector<size_t> sizes;
  for (int i = 0; i < 12; ++i) {
    // Some are so large that a backend may read them apart from others.
    sizes.push_back(i % 4 == 0 ? 40'000 : 1'000);
    ASSERT_OK(objects->Create(document(sizes.back()), {.shard = 2}));
  }
  for (const size_t max_bytes : {1, 2'500, 41'000, 1'000'000}) {
    IdRange range;
    std::vector<size_t> found;
    for (;;) {
      ASSERT_OK_AND_ASSIGN(const ObjectScanPage page, objects->Scan(range, {.max_bytes = max_bytes}));
      size_t bytes = 0;
      for (const Object& object : page.objects) {
        found.push_back(object.data.size());
        bytes += object.data.size();
      }
      EXPECT_TRUE(page.objects.size() <= 1 || bytes <= max_bytes) << bytes << " of " << max_bytes;
      if (!page.next) break;
      ASSERT_GT(*page.next, range.start);
      range.start = *page.next;
    }
    EXPECT_EQ(found, sizes) << max_bytes;
  }
}

TEST_P(ObjectsSuite, AScanThatIsToPauseMakesProgress) {
  const auto objects = Objects();
  const std::vector<uint64_t> ids = Fill(*objects, 500);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i % 100 == 99) continue;
    ASSERT_OK(objects->Erase(ids[i]));
  }
  const ScanBudget budget(1);
  EXPECT_EQ(IdsOf(ScanAll(*objects)),
            (std::vector<uint64_t>{ids[99], ids[199], ids[299], ids[399], ids[499]}));
}

TEST_P(ObjectsSuite, WhatExistsThroughoutAScanIsReturnedOnceBesideWriters) {
  const auto objects = Objects();
  const std::vector<uint64_t> ids = Fill(*objects, 200);
  std::thread writer([&] {
    for (int i = 0; i < 200; ++i) {
      const auto id = objects->Create("{}", {.shard = static_cast<uint32_t>(i % 5)});
      if (id.ok() && i % 2 == 0) objects->Erase(*id).IgnoreError();
    }
  });
  const std::vector<uint64_t> found = IdsOf(ScanAll(*objects, {}, {.limit = 9}));
  writer.join();
  EXPECT_EQ(std::adjacent_find(found.begin(), found.end(), std::greater_equal<>()), found.end());
  EXPECT_TRUE(std::includes(found.begin(), found.end(), ids.begin(), ids.end()));
}

TEST_P(ObjectsSuite, PartitionsCoverTheObjectsOnce) {
  const auto objects = Objects();
  const std::vector<uint64_t> ids = Fill(*objects, 300);
  Reclaim();
  for (const size_t wanted : {1, 2, 8, 1000}) {
    ASSERT_OK_AND_ASSIGN(const auto partitions, objects->Partitions(wanted));
    ASSERT_FALSE(partitions.empty());
    EXPECT_LE(partitions.size(), wanted);
    std::vector<uint64_t> found;
    uint64_t end = 0;
    for (const Partition& partition : partitions) {
      EXPECT_FALSE(partition.name.empty());
      EXPECT_EQ(partition.ids.start, end);
      end = partition.ids.end;
      for (const uint64_t id : IdsOf(ScanAll(*objects, partition.ids))) found.push_back(id);
    }
    EXPECT_EQ(end, kMaxId + 1);
    EXPECT_EQ(found, ids);
  }
}

// ---- mappings ----

using Entries = std::vector<ScannedMapping>;

Entries ScanAll(MappingStore& mappings, const IdRange& range = {}, uint32_t limit = 1000) {
  Entries found;
  for (MappingPosition start{.from = range.start};;) {
    const auto page = mappings.Scan(start, range.end, limit);
    EXPECT_OK(page);
    if (!page.ok()) return found;
    EXPECT_LE(page->entries.size(), limit);
    found.insert(found.end(), page->entries.begin(), page->entries.end());
    if (!page->next) return found;
    EXPECT_GT(*page->next, start);
    EXPECT_LT(page->next->from, range.end);
    if (*page->next <= start) return found;
    start = *page->next;
  }
}

TEST_P(MappingsSuite, AScanReturnsAllEntriesByFromAndTo) {
  const auto mappings = Mappings();
  EXPECT_TRUE(ScanAll(*mappings).empty());
  const uint64_t far = ObjectId::ValueOf(3, 5, 7);
  ASSERT_OK(mappings->Add(far, 2, 1));
  ASSERT_OK(mappings->Add(7, 30, 1));
  ASSERT_OK(mappings->Add(7, 20, 9));
  ASSERT_OK(mappings->Add(7, kMaxId, 5));
  ASSERT_OK(mappings->Add(0, 0, kMaxTimestamp));
  ASSERT_OK(mappings->Add(8, 1, 2));
  ASSERT_OK(mappings->Add(8, 2, 2));
  ASSERT_OK(mappings->Remove(8, 1).status());
  const Entries all = {{0, 0, kMaxTimestamp}, {7, 20, 9}, {7, 30, 1}, {7, kMaxId, 5}, {8, 2, 2}, {far, 2, 1}};
  for (const uint32_t limit : {1, 2, 5, 1000}) {
    EXPECT_EQ(ScanAll(*mappings, {}, limit), all) << limit;
    EXPECT_EQ(ScanAll(*mappings, {7, 8}, limit), Entries(all.begin() + 1, all.begin() + 4));
    EXPECT_EQ(ScanAll(*mappings, {8, far + 1}, limit), Entries(all.begin() + 4, all.end()));
    EXPECT_EQ(ScanAll(*mappings, {9, far}, limit), Entries());
  }
}

TEST_P(MappingsSuite, ScansAndPartitionsAreThoseOfASimpleModel) {
  const auto mappings = Mappings();
  Random random(Seed("mapping scans"));
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> model;  // (from, to) -> sequence
  for (int i = 0; i < 1500; ++i) {
    const uint64_t from = ObjectId::ValueOf(static_cast<uint32_t>(random.Below(5)), 1, 1 + random.Below(20));
    const uint64_t to = random.Below(10);
    if (random.OneIn(3)) {
      ASSERT_EQ(*mappings->Remove(from, to), model.erase({from, to}) == 1);
    } else {
      const uint64_t sequence = random.Below(10);
      ASSERT_OK(mappings->Add(from, to, sequence));
      model[{from, to}] = sequence;
    }
    if (random.OneIn(50)) GetParam().disturb(backend(), spec(), random);
    if (!random.OneIn(100)) continue;
    Entries expected;
    for (const auto& [key, sequence] : model) expected.push_back({key.first, key.second, sequence});
    ASSERT_EQ(ScanAll(*mappings, {}, 1 + static_cast<uint32_t>(random.Below(300))), expected);
    {
      const ScanBudget budget(1);
      ASSERT_EQ(ScanAll(*mappings), expected);
    }
    ASSERT_OK_AND_ASSIGN(const auto partitions, mappings->Partitions(1 + random.Below(20)));
    Entries found;
    for (const Partition& partition : partitions) {
      for (const ScannedMapping& entry : ScanAll(*mappings, partition.ids)) found.push_back(entry);
    }
    ASSERT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace kvstore::testing
