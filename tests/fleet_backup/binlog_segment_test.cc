#include "fleet_backup/binlog_segment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "backup/checked_line.h"
#include "blobstore/open_blob_store.h"
#include "blobstore/sha256.h"
#include "fleet_backup/binlog_chains.h"
#include "tests/fleet_backup/made_chain.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The stored form of a pair's binary log, and what is refused.
namespace kvstore::fleet_backup {
namespace {

using absl::StatusCode;
using testing::FailsWith;
using testing::MadeFormat;
using testing::MadeTransaction;

constexpr char kChain[] = "20261124T031459Z-1a2b3c4d";
constexpr char kBlob[] = "log/20261124T031459Z-1a2b3c4d/00000002";

BinlogSegment Example() {
  return {.chain = kChain,
          .number = 2,
          .previous = std::string(64, 'a'),
          .after = "1-7-16,2-8-3",
          .last = "1-9-18,2-8-3",
          .first_ms = 1'000'000,
          .last_ms = 1'002'000,
          .transactions = 2,
          .nodes = R"({"format": 1, "nodes": {}})",
          .nodes_in = 2,
          .log = MadeFormat() + MadeTransaction(1, 7, 17, 1000, "INSERT") +
                 MadeTransaction(1, 9, 18, 1002, "UPDATE")};
}

/// The example, in whose first line `from` has been replaced by `to`.
std::string Changed(const std::string& from, const std::string& to) {
  const std::string bytes = EncodeBinlogSegment(Example());
  std::string line = bytes.substr(0, bytes.find('\n'));
  const size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) line.replace(at, from.size(), to);
  const size_t log = bytes.find('\n', bytes.find('\n') + 1) + 1;
  return backup::WithChecksumLine(line) + bytes.substr(log);
}

// Later versions must play the segments that any earlier one has sent, so this text never changes.
TEST(BinlogSegment, ItsFormIsPinned) {
  const BinlogSegment example = Example();
  const std::string line = fmt::format(
      R"({{"after":"1-7-16,2-8-3","bytes":{},"chain":"20261124T031459Z-1a2b3c4d","first_ms":1000000,"format":1,)"
      R"("last":"1-9-18,2-8-3","last_ms":1002000,"number":2,"previous":"{}","sha256":"{}","transactions":2,)"
      R"("zookeeper":"{{\"format\": 1, \"nodes\": {{}}}}","zookeeper_in":2}})",
      example.log.size(), std::string(64, 'a'), Hex(Sha256Of(example.log)));
  EXPECT_EQ(EncodeBinlogSegment(example).substr(0, backup::WithChecksumLine(line).size()),
            backup::WithChecksumLine(line));
}

TEST(BinlogSegment, IsReadBack) {
  ASSERT_OK_AND_ASSIGN(const BinlogSegment read, DecodeBinlogSegment(EncodeBinlogSegment(Example()), kBlob));
  EXPECT_EQ(read, Example());
  BinlogSegment timed = Example();
  timed.nodes_ms = 1'003'000;
  EXPECT_EQ(*DecodeBinlogSegment(EncodeBinlogSegment(timed), kBlob), timed);
  // One that has nothing but other settings of datasets.
  BinlogSegment empty = Example();
  empty.log.clear();
  empty.transactions = 0;
  empty.last = empty.after;
  ASSERT_OK_AND_ASSIGN(const BinlogSegment read_empty,
                       DecodeBinlogSegment(EncodeBinlogSegment(empty), kBlob));
  EXPECT_EQ(read_empty, empty);
}

TEST(BinlogSegment, DamageIsFound) {
  const std::string bytes = EncodeBinlogSegment(Example());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_THAT(DecodeBinlogSegment(damaged, kBlob), FailsWith(StatusCode::kDataLoss, kBlob)) << i;
    EXPECT_THAT(DecodeBinlogSegment(bytes.substr(0, i), kBlob), FailsWith(StatusCode::kDataLoss, kBlob)) << i;
  }
}

TEST(BinlogSegment, WhatContradictsItselfIsRefused) {
  EXPECT_THAT(DecodeBinlogSegment(Changed(R"("transactions":2)", R"("transactions":3)"), kBlob),
              FailsWith(StatusCode::kDataLoss, "it lacks transactions"));
  EXPECT_THAT(DecodeBinlogSegment(Changed(R"("last":"1-9-18)", R"("last":"1-9-19)"), kBlob),
              FailsWith(StatusCode::kDataLoss, "does not end where it says"));
  EXPECT_THAT(DecodeBinlogSegment(Changed(R"("after":"1-7-16)", R"("after":"1-7-17)"), kBlob),
              FailsWith(StatusCode::kDataLoss, "not in order"));
  EXPECT_THAT(DecodeBinlogSegment(Changed(R"("number":2)", R"("number":3)"), kBlob),
              FailsWith(StatusCode::kDataLoss, "another segment than its name says"));
  EXPECT_THAT(DecodeBinlogSegment(Changed(R"("zookeeper_in":2)", R"("zookeeper_in":1)"), kBlob),
              FailsWith(StatusCode::kDataLoss, "zookeeper_in"));
  EXPECT_THAT(DecodeBinlogSegment(Changed(R"("format":1)", R"("format":2)"), kBlob),
              FailsWith(StatusCode::kFailedPrecondition, "a newer version"));
  // A field of a later version need not be known.
  EXPECT_OK(DecodeBinlogSegment(Changed(R"("format":1)", R"("extra":1,"format":1)"), kBlob));
}

class BinlogChainTest : public ::testing::Test {
 protected:
  void PutChain(const std::string& chain, uint64_t after, int count) {
    testing::PutMadeChain(*blobs_, chain, after, count);
  }
  absl::Status Read(const BinlogChain& chain, int& count) {
    return ReadChain(*blobs_, chain, [&](const BinlogSegment&) {
      ++count;
      return true;
    });
  }

  const testing::TempDir dir_;
  const std::unique_ptr<BlobStore> blobs_ = *OpenBlobStore("file:" + (dir_ / "blobs").string());
};

TEST_F(BinlogChainTest, AChainIsReadFromItsBeginning) {
  PutChain(kChain, 10, 3);
  ASSERT_OK_AND_ASSIGN(const BinlogChain chain, ListChain(*blobs_, kChain));
  EXPECT_EQ(chain.segments.size(), 3u);
  int count = 0;
  EXPECT_OK(Read(chain, count));
  EXPECT_EQ(count, 3);
  ASSERT_OK_AND_ASSIGN(const auto last, FetchBinlogSegment(*blobs_, chain.segments.back()));
  EXPECT_EQ(*NodesAfter(*blobs_, last.segment), std::string("nodes of ") + kChain);
  EXPECT_TRUE(ListChain(*blobs_, "20261124T031459Z-00000000")->segments.empty());
}

TEST_F(BinlogChainTest, ASegmentThatIsMissingIsTold) {
  PutChain(kChain, 10, 3);
  ASSERT_OK(blobs_->Delete(fmt::format("log/{}/00000002", kChain)));
  int count = 0;
  EXPECT_THAT(Read(*ListChain(*blobs_, kChain), count), FailsWith(StatusCode::kDataLoss, "is missing"));
  EXPECT_EQ(count, 1);
}

TEST_F(BinlogChainTest, ASegmentOfAnotherChainIsNotTakenForTheNext) {
  PutChain(kChain, 10, 3);
  const std::string name = fmt::format("log/{}/00000002", kChain);
  BinlogSegment other = FetchBinlogSegment(*blobs_, name)->segment;
  other.previous = std::string(64, 'b');
  ASSERT_OK(blobs_->Put(name, EncodeBinlogSegment(other), PutMode::kReplace));
  int count = 0;
  EXPECT_THAT(Read(*ListChain(*blobs_, kChain), count), FailsWith(StatusCode::kDataLoss, "is another one"));
}

TEST_F(BinlogChainTest, ChainsAfterABackupBeginWithTheOneThatItIsIn) {
  PutChain("20261124T010000Z-11111111", 10, 1);
  PutChain("20261124T020000Z-22222222", 11, 1);
  PutChain("20261124T030000Z-33333333", 12, 1);
  const auto ids = [&](const std::string& backup) {
    std::vector<std::string> found;
    const auto chains = ListChainsAfter(*blobs_, backup);
    EXPECT_OK(chains);
    for (const BinlogChain& chain : *chains) found.push_back(chain.id.substr(9, 2));
    return found;
  };
  EXPECT_EQ(ids("20261124T000000Z-00000000"), (std::vector<std::string>{"01", "02", "03"}));
  EXPECT_EQ(ids("20261124T020000Z-22222222"), (std::vector<std::string>{"02", "03"}));
  EXPECT_EQ(ids("20261124T023000Z-44444444"), (std::vector<std::string>{"02", "03"}));
  EXPECT_EQ(ids("20261124T040000Z-55555555"), (std::vector<std::string>{"03"}));
}

}  // namespace
}  // namespace kvstore::fleet_backup
