#include "tests/blobstore/blob_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "blobstore/blob_checksum.h"
#include "kvstore_api/call_scope.h"
#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {
namespace {

using absl::StatusCode;

/// Bytes that differ everywhere, so that a piece in the wrong place shows.
std::string Noise(size_t size, uint64_t seed) {
  Random random(seed);
  std::string bytes(size, '\0');
  for (size_t at = 0; at + 8 <= size; at += 8) {
    const uint64_t next = random.Next();
    bytes.replace(at, 8, reinterpret_cast<const char*>(&next), 8);
  }
  return bytes;
}

std::string ChecksumOf(std::string_view bytes) {
  BlobHasher hasher;
  hasher.Add(bytes);
  return hasher.Finish();
}

/// A source of these bytes, in parts of odd sizes.
BlobSource SourceOf(const std::string& bytes) {
  return [&bytes, at = size_t{0}](std::span<char> buffer) mutable -> absl::StatusOr<size_t> {
    const size_t size = std::min({buffer.size(), bytes.size() - at, size_t{1'234'567}});
    std::copy_n(bytes.data() + at, size, buffer.data());
    at += size;
    return size;
  };
}

/// Reads a blob into memory.
absl::StatusOr<std::string> ReadWhole(BlobStore& store, const std::string& name, const BlobInfo& expected) {
  std::string read(expected.size, '\0');
  uint64_t received = 0;
  auto status = store.Read(name, expected, [&](uint64_t offset, std::string_view bytes) {
    EXPECT_LE(offset + bytes.size(), expected.size);
    read.replace(offset, bytes.size(), bytes);
    received += bytes.size();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  EXPECT_EQ(received, expected.size);
  return read;
}

std::vector<std::string> NamesOf(const BlobPage& page) {
  std::vector<std::string> names;
  for (const BlobEntry& blob : page.blobs) names.push_back(blob.name);
  return names;
}

}  // namespace

void BlobSuite::SetUp() {
  static std::atomic<int> count{0};
  prefix_ = fmt::format("test-{}", ++count);
  store_ = GetParam().open(prefix_);
}

TEST_P(BlobSuite, WhatIsPutIsReadAlsoByAnother) {
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string("\0\r\n\xff", 4), Noise(300'000, 1)}) {
    ASSERT_OK_AND_ASSIGN(const BlobInfo put, store_->Put("a/b/c.sst", bytes, PutMode::kReplace));
    EXPECT_EQ(put.size, bytes.size());
    EXPECT_EQ(put.checksum, ChecksumOf(bytes));
    ASSERT_OK_AND_ASSIGN(const std::string read, OpenAgain()->Get("a/b/c.sst", kBlobPieceBytes));
    EXPECT_EQ(read, bytes);
    ASSERT_OK_AND_ASSIGN(const std::string whole, ReadWhole(*store_, "a/b/c.sst", put));
    EXPECT_EQ(whole, bytes);
    ASSERT_OK_AND_ASSIGN(const BlobInfo there, store_->Stat("a/b/c.sst"));
    EXPECT_EQ(there.size, bytes.size());
    EXPECT_EQ(there.checksum, GetParam().keeps_checksums ? put.checksum : "");
  }
}

TEST_P(BlobSuite, WhatIsThereIsNotReplacedUnlessWanted) {
  ASSERT_OK(store_->Put("m", "first", PutMode::kIfAbsent));
  EXPECT_THAT(store_->Put("m", "second", PutMode::kIfAbsent), FailsWith(StatusCode::kAlreadyExists, "m"));
  // The same bytes are no excuse for a put whose answer was not lost.
  EXPECT_THAT(store_->Put("m", "first", PutMode::kIfAbsent), FailsWith(StatusCode::kAlreadyExists, "m"));
  EXPECT_EQ(*store_->Get("m", 100), "first");
  ASSERT_OK(store_->Put("m", "third", PutMode::kReplace));
  EXPECT_EQ(*store_->Get("m", 100), "third");
  ASSERT_OK(store_->Delete("m"));
  ASSERT_OK(store_->Put("m", "fourth", PutMode::kIfAbsent));
}

TEST_P(BlobSuite, OfManyWhoPutIfAbsentOneIsFirst) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = fmt::format("locks/{}", round);
    std::atomic<int> winner{-1};
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const auto put = store_->Put(name, fmt::format("by {}", i), PutMode::kIfAbsent);
        if (put.ok()) {
          winner = i;
          ++won;
        } else {
          EXPECT_EQ(put.status().code(), StatusCode::kAlreadyExists) << put.status();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(*store_->Get(name, 100), fmt::format("by {}", winner.load()));
  }
}

TEST_P(BlobSuite, LargeBlobsAreStreamedInPieces) {
  const std::string bytes = Noise(2 * kBlobPieceBytes + 12'345, 2);
  ASSERT_OK_AND_ASSIGN(const BlobInfo put, store_->PutStream("large", SourceOf(bytes), PutMode::kIfAbsent));
  EXPECT_EQ(put.size, bytes.size());
  EXPECT_EQ(put.checksum, ChecksumOf(bytes));
  EXPECT_TRUE(put.checksum.ends_with("-3"));
  ASSERT_OK_AND_ASSIGN(const BlobInfo there, store_->Stat("large"));
  EXPECT_EQ(there.size, bytes.size());
  if (GetParam().keeps_checksums && !there.checksum.empty()) {
    EXPECT_EQ(there.checksum, put.checksum);
  }
  ASSERT_OK_AND_ASSIGN(const std::string read, ReadWhole(*store_, "large", put));
  EXPECT_TRUE(read == bytes);
  // A range across the border of two pieces.
  ASSERT_OK_AND_ASSIGN(const std::string range, store_->GetRange("large", kBlobPieceBytes - 5, 10));
  EXPECT_EQ(range, bytes.substr(kBlobPieceBytes - 5, 10));
  EXPECT_THAT(store_->Get("large", kBlobPieceBytes), FailsWith(StatusCode::kFailedPrecondition, "at most"));
  EXPECT_THAT(store_->PutStream("large", SourceOf(bytes), PutMode::kIfAbsent),
              FailsWith(StatusCode::kAlreadyExists, "large"));
}

TEST_P(BlobSuite, AStreamOfExactlyOnePieceIsABlobOfOnePiece) {
  for (const size_t size : {size_t{0}, size_t{kBlobPieceBytes}}) {
    const std::string bytes(size, 'p');
    ASSERT_OK_AND_ASSIGN(const BlobInfo put, store_->PutStream("p", SourceOf(bytes), PutMode::kReplace));
    EXPECT_EQ(put.size, size);
    EXPECT_EQ(put.checksum, ChecksumOf(bytes));
    EXPECT_EQ(put.checksum.size(), 64u);
    EXPECT_EQ(store_->Get("p", kBlobPieceBytes)->size(), size);
  }
}

TEST_P(BlobSuite, AStreamThatFailsLeavesNothing) {
  for (const uint64_t fails_at : {uint64_t{0}, uint64_t{10'000'000}, 2 * kBlobPieceBytes + 1}) {
    uint64_t sent = 0;
    const auto source = [&](std::span<char> buffer) -> absl::StatusOr<size_t> {
      if (sent >= fails_at) return absl::AbortedError("the pipe broke");
      const size_t size = std::min<uint64_t>(buffer.size(), fails_at - sent);
      std::fill_n(buffer.data(), size, 'x');
      sent += size;
      return size;
    };
    EXPECT_THAT(store_->PutStream("s", source, PutMode::kReplace),
                FailsWith(StatusCode::kAborted, "the pipe broke"));
    EXPECT_THAT(store_->Stat("s"), FailsWith(StatusCode::kNotFound, "s"));
    EXPECT_TRUE(store_->List("", "", 10)->blobs.empty());
  }
}

TEST_P(BlobSuite, RangesEndWithTheBlob) {
  ASSERT_OK(store_->Put("r", "0123456789", PutMode::kReplace));
  ASSERT_OK(store_->Put("empty", "", PutMode::kReplace));
  EXPECT_EQ(*store_->GetRange("r", 0, 10), "0123456789");
  EXPECT_EQ(*store_->GetRange("r", 3, 4), "3456");
  EXPECT_EQ(*store_->GetRange("r", 8, 100), "89");
  EXPECT_EQ(*store_->GetRange("r", 10, 1), "");
  EXPECT_EQ(*store_->GetRange("r", 1'000'000, 5), "");
  EXPECT_EQ(*store_->GetRange("r", UINT64_MAX, kBlobPieceBytes), "");
  EXPECT_EQ(*store_->GetRange("r", 2, 0), "");
  EXPECT_EQ(*store_->GetRange("empty", 0, 5), "");
  EXPECT_THAT(store_->GetRange("none", 0, 5), FailsWith(StatusCode::kNotFound, "none"));
  EXPECT_THAT(store_->GetRange("r", 0, kBlobPieceBytes + 1),
              FailsWith(StatusCode::kInvalidArgument, "at most"));
  EXPECT_THAT(store_->Get("r", 9), FailsWith(StatusCode::kFailedPrecondition, "10 bytes; at most 9"));
  EXPECT_EQ(*store_->Get("r", 10), "0123456789");
}

TEST_P(BlobSuite, WhatIsNotAsExpectedIsDataLoss) {
  ASSERT_OK_AND_ASSIGN(const BlobInfo put, store_->Put("d", "0123456789", PutMode::kReplace));
  for (const uint64_t size : {uint64_t{0}, uint64_t{9}, uint64_t{11}}) {
    EXPECT_THAT(ReadWhole(*store_, "d", {.size = size}), FailsWith(StatusCode::kDataLoss, "10 bytes"))
        << size;
  }
  EXPECT_THAT(ReadWhole(*store_, "d", {.size = 10, .checksum = ChecksumOf("9876543210")}),
              FailsWith(StatusCode::kDataLoss, "checksum"));
  EXPECT_OK(ReadWhole(*store_, "d", put));
  EXPECT_THAT(ReadWhole(*store_, "none", put), FailsWith(StatusCode::kNotFound, "none"));
  EXPECT_THAT(ReadWhole(*store_, "none", {}), FailsWith(StatusCode::kNotFound, "none"));
}

TEST_P(BlobSuite, TheSinksErrorEndsARead) {
  ASSERT_OK_AND_ASSIGN(const BlobInfo put, store_->Put("k", std::string(1'000'000, 'k'), PutMode::kReplace));
  int calls = 0;
  const auto sink = [&](uint64_t, std::string_view) {
    ++calls;
    return absl::ResourceExhaustedError("the disk here is full");
  };
  EXPECT_THAT(store_->Read("k", put, sink),
              FailsWith(StatusCode::kResourceExhausted, "the disk here is full"));
  EXPECT_EQ(calls, 1);
  // The store goes on working.
  EXPECT_OK(ReadWhole(*store_, "k", put));
}

TEST_P(BlobSuite, ListsAreInOrderAndInPages) {
  // '-' and '.' come before '/', and digits after it.
  const std::vector<std::string> names = {"a-b", "a.b", "a/b", "a/c/d", "a0", "b", "c/1", "c/10", "c/2"};
  for (const std::string& name : names) ASSERT_OK(store_->Put(name, name, PutMode::kReplace));
  ASSERT_OK_AND_ASSIGN(const BlobPage all, store_->List("", "", 1000));
  EXPECT_EQ(NamesOf(all), names);
  EXPECT_EQ(all.next, "");
  EXPECT_EQ(all.blobs[3].size, 5u);
  EXPECT_GT(all.blobs[3].modified_ms, 1'600'000'000'000u);
  for (const size_t limit : {1u, 2u, 3u, 4u, 8u, 9u}) {
    std::vector<std::string> found;
    std::string after;
    do {
      ASSERT_OK_AND_ASSIGN(const BlobPage page, store_->List("", after, limit));
      ASSERT_LE(page.blobs.size(), limit);
      for (const std::string& name : NamesOf(page)) found.push_back(name);
      after = page.next;
    } while (!after.empty() && found.size() <= names.size());
    EXPECT_EQ(found, names) << limit;
  }
  EXPECT_EQ(NamesOf(*store_->List("a/", "", 10)), (std::vector<std::string>{"a/b", "a/c/d"}));
  EXPECT_EQ(NamesOf(*store_->List("c/1", "", 10)), (std::vector<std::string>{"c/1", "c/10"}));
  EXPECT_EQ(NamesOf(*store_->List("c/", "c/1", 10)), (std::vector<std::string>{"c/10", "c/2"}));
  EXPECT_EQ(NamesOf(*store_->List("", "a/c", 2)), (std::vector<std::string>{"a/c/d", "a0"}));
  EXPECT_TRUE(store_->List("none", "", 10)->blobs.empty());
  EXPECT_THAT(store_->List("", "", 0), FailsWith(StatusCode::kInvalidArgument, "limit"));
  EXPECT_THAT(store_->List("", "", 1001), FailsWith(StatusCode::kInvalidArgument, "limit"));
}

TEST_P(BlobSuite, WhatIsDeletedIsGone) {
  ASSERT_OK(store_->Put("x/y", "1", PutMode::kReplace));
  ASSERT_OK(store_->Delete("x/y"));
  EXPECT_OK(store_->Delete("x/y"));
  EXPECT_OK(store_->Delete("never/was"));
  EXPECT_THAT(store_->Get("x/y", 10), FailsWith(StatusCode::kNotFound, "x/y"));
  EXPECT_THAT(store_->Stat("x/y"), FailsWith(StatusCode::kNotFound, "x/y"));
  EXPECT_TRUE(store_->List("", "", 10)->blobs.empty());
}

TEST_P(BlobSuite, StoresOfOtherPrefixesAreOthers) {
  const auto other = GetParam().open(prefix_ + "-other");
  ASSERT_OK(store_->Put("n", "mine", PutMode::kIfAbsent));
  ASSERT_OK(other->Put("n", "theirs", PutMode::kIfAbsent));
  EXPECT_EQ(*store_->Get("n", 10), "mine");
  EXPECT_EQ(NamesOf(*store_->List("", "", 10)), std::vector<std::string>{"n"});
}

TEST_P(BlobSuite, NamesThatAreNoneAreRefusedEverywhere) {
  const std::vector<std::string> bad = {
      "",
      "/a",
      "a/",
      "a//b",
      ".",
      "..",
      "../a",
      "a/../b",
      "a/.b",
      ".new/x",
      "a b",
      "a\\b",
      std::string("a\0b", 3),
      "\xC3\xA4",
      "a?b",
      "a%2Fb",
      std::string(201, 'a'),
      std::string(200, 'a') + "/" + std::string(200, 'b') + "/" + std::string(111, 'c')};
  for (const std::string& name : bad) {
    const auto refused = FailsWith(StatusCode::kInvalidArgument, "name of a blob");
    EXPECT_THAT(store_->Put(name, "x", PutMode::kReplace), refused) << name;
    EXPECT_THAT(store_->PutStream(name, SourceOf(name), PutMode::kReplace), refused) << name;
    EXPECT_THAT(store_->Get(name, 1), refused) << name;
    EXPECT_THAT(store_->GetRange(name, 0, 1), refused) << name;
    EXPECT_THAT(ReadWhole(*store_, name, {.size = 1}), refused) << name;
    EXPECT_THAT(store_->Delete(name), refused) << name;
    EXPECT_THAT(store_->Stat(name), refused) << name;
  }
  EXPECT_THAT(store_->List("../", "", 10), FailsWith(StatusCode::kInvalidArgument, "name of a blob"));
  const std::string longest =
      std::string(200, 'a') + "/" + std::string(200, 'b') + "/" + std::string(110, 'c');
  EXPECT_OK(store_->Put(longest, "x", PutMode::kIfAbsent));
  EXPECT_EQ(*store_->Get(longest, 1), "x");
}

TEST_P(BlobSuite, ABlobThatIsTooLargeForOnePutIsRefused) {
  const std::string bytes(kBlobPieceBytes + 1, 'x');
  EXPECT_THAT(store_->Put("x", bytes, PutMode::kReplace),
              FailsWith(StatusCode::kInvalidArgument, "at most 67108864"));
}

TEST_P(BlobSuite, CallsEndWithTheirDeadlineAndWhenTheyAreCancelled) {
  ASSERT_OK_AND_ASSIGN(const BlobInfo put, store_->Put("c", "x", PutMode::kReplace));
  {
    const CallScope scope(std::chrono::milliseconds(0));
    EXPECT_THAT(store_->Put("c", "y", PutMode::kReplace),
                FailsWith(StatusCode::kDeadlineExceeded, "deadline"));
    EXPECT_THAT(ReadWhole(*store_, "c", put), FailsWith(StatusCode::kDeadlineExceeded, "deadline"));
  }
  const std::atomic<bool> cancelled{true};
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  EXPECT_THAT(store_->Get("c", 10), FailsWith(StatusCode::kCancelled, "cancelled"));
}

TEST_P(BlobSuite, ManyThreadsShareAStore) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20; ++i) {
        const std::string name = fmt::format("t{}/{}", thread, i);
        const std::string bytes =
            Noise(1000 + 997 * static_cast<size_t>(i), static_cast<uint64_t>(thread * 100 + i));
        ASSERT_OK_AND_ASSIGN(const BlobInfo put, store_->Put(name, bytes, PutMode::kIfAbsent));
        ASSERT_OK_AND_ASSIGN(const std::string read, ReadWhole(*store_, name, put));
        EXPECT_TRUE(read == bytes) << name;
        if (i % 2 == 0) {
          ASSERT_OK(store_->Delete(name));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->List("", "", 1000)->blobs.size(), 60u);
}

}  // namespace kvstore::testing
