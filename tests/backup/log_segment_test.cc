#include "backup/log_segment.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "backup/checked_line.h"
#include "tests/support/status_matchers.h"

/// The stored form of segments of the log, and what is refused.
namespace kvstore::backup {
namespace {

using absl::StatusCode;
using testing::FailsWith;

constexpr char kChain[] = "20261124T031459Z-1a2b3c4d";
constexpr char kBlob[] = "log/20261124T031459Z-1a2b3c4d/00000002";

LogSegment Example() {
  return {.chain = kChain,
          .number = 2,
          .previous = std::string(64, 'a'),
          .after = 10,
          .last = 14,
          .marks = {{1000, 10}, {2000, 11}, {3000, 14}},
          .schema = {.families = {{0, "default"}, {7, "events"}}, .files = {{"catalog.json", "{}\n"}}},
          .schema_is_later = false,
          .writes = {{11, 1, "one"}, {12, 3, std::string("\0\xff", 2)}}};
}

TEST(LogSegment, WhatWasEncodedIsDecoded) {
  const LogSegment segment = Example();
  ASSERT_OK_AND_ASSIGN(const LogSegment read, DecodeSegment(EncodeSegment(segment), kBlob));
  EXPECT_EQ(read.chain, segment.chain);
  EXPECT_EQ(read.number, segment.number);
  EXPECT_EQ(read.previous, segment.previous);
  EXPECT_EQ(read.after, segment.after);
  EXPECT_EQ(read.last, segment.last);
  EXPECT_EQ(read.marks, segment.marks);
  EXPECT_EQ(read.schema, segment.schema);
  EXPECT_EQ(read.writes, segment.writes);
  EXPECT_FALSE(read.schema_is_later);
}

TEST(LogSegment, ASchemaOfALaterSegmentIsToldApart) {
  LogSegment segment = Example();
  segment.schema_is_later = true;
  const std::string encoded = EncodeSegment(segment);
  EXPECT_NE(encoded.find(R"("schema_is_later":true)"), std::string::npos);
  ASSERT_OK_AND_ASSIGN(const LogSegment read, DecodeSegment(encoded, kBlob));
  EXPECT_TRUE(read.schema_is_later);
  EXPECT_EQ(read.schema, segment.schema);
}

// Segments that were sent by any version must be replayed by all later ones, so this text never changes.
TEST(LogSegment, ItsFirstLineIsPinned) {
  const std::string encoded = EncodeSegment(Example());
  EXPECT_EQ(
      encoded.substr(0, encoded.find('\n')),
      R"({"after":10,"bytes":37,"chain":"20261124T031459Z-1a2b3c4d","families":{"0":"default","7":"events"},)"
      R"("files":{"catalog.json":"{}\n"},"format":1,"last":14,"marks":[[1000,10],[2000,11],[3000,14]],)"
      R"("number":2,"previous":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",)"
      R"("sha256":"9aee944d76e06205c5d6d2c6f2ee4e41075952f95bb0722e5752fa681bfd129e"})");
}

TEST(LogSegment, NamesHaveTheirParts) {
  EXPECT_EQ(SegmentBlob(kChain, 2), kBlob);
  EXPECT_EQ(PartsOfSegment(kBlob), (std::pair<std::string_view, uint64_t>(kChain, 2)));
  for (const char* other : {"log/x/00000002", "log/20261124T031459Z-1a2b3c4d/2", "backups/x.json", "log/",
                            "log/20261124T031459Z-1a2b3c4d/0000000x"}) {
    EXPECT_EQ(PartsOfSegment(other).first, "") << other;
  }
}

TEST(LogSegment, AnyChangedByteIsFound) {
  const std::string encoded = EncodeSegment(Example());
  for (size_t at = 0; at < encoded.size(); ++at) {
    std::string changed = encoded;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const auto decoded = DecodeSegment(changed, kBlob);
    // zstd does not look at all bits of its own header; what it gives is compared.
    if (decoded.ok()) {
      EXPECT_EQ(decoded->writes, Example().writes) << at;
    } else {
      EXPECT_THAT(decoded, FailsWith(StatusCode::kDataLoss, kBlob)) << at;
    }
  }
  for (size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_THAT(DecodeSegment(encoded.substr(0, size), kBlob), FailsWith(StatusCode::kDataLoss, kBlob))
        << size;
  }
}

TEST(LogSegment, WhatContradictsItselfIsRefused) {
  const auto refused = [](LogSegment segment, const std::string& problem) {
    EXPECT_THAT(DecodeSegment(EncodeSegment(segment), kBlob), FailsWith(StatusCode::kDataLoss, problem));
  };
  LogSegment segment = Example();
  segment.number = 3;
  refused(segment, "chain: is not that of its name");
  segment = Example();
  segment.writes[1].number = 13;
  refused(segment, "not in order");
  segment = Example();
  segment.last = 15;
  refused(segment, "lacks the last of its writes");
  segment = Example();
  segment.marks[1].last = 9;
  refused(segment, "marks");
  segment = Example();
  segment.marks.clear();
  refused(segment, "marks: must not be empty");
  segment = Example();
  segment.schema.files["../x"] = "y";
  refused(segment, "files");
}

}  // namespace
}  // namespace kvstore::backup
