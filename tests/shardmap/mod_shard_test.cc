#include "shardmap/mod_shard.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

ShardMap Map(const std::string& ranges) {
  std::string text = "[";
  for (size_t begin = 0; begin < ranges.size();) {
    const size_t end = std::min(ranges.find(' ', begin), ranges.size());
    text += (begin > 0 ? "," : "") + std::string("{\"range\":[") + ranges.substr(begin, end - begin) +
            R"(],"master":"a","slave":"b"})";
    begin = end + 1;
  }
  return ShardMap::Parse(text + "]").value();
}

TEST(ModShard, IsThePublishedExample) { EXPECT_EQ(ModShard("1.2.3.4", 4096), 1537u); }

TEST(ModShard, IsMd5AsABigEndianNumberModuloTheCount) {
  // md5("") = d41d8cd98f00b204e9800998ecf8427e, md5("abc") = 900150983cd24fb0d6963f7d28e17f72
  EXPECT_EQ(ModShard("", 65536), 0x427eu);
  EXPECT_EQ(ModShard("abc", 65536), 0x7f72u);
  EXPECT_EQ(ModShard("abc", 1), 0u);
  EXPECT_EQ(ModShard("abc", 1000), 570u);
  EXPECT_NE(ModShard(std::string_view("\0", 1), 65536), ModShard("", 65536));
}

TEST(ModShard, MapsGoFromZeroWithoutGaps) {
  EXPECT_OK(ValidateModMap(Map("0,15")));
  EXPECT_OK(ValidateModMap(Map("0,7 8,15")));
  EXPECT_THAT(ValidateModMap(Map("1,15")),
              FailsWith(absl::StatusCode::kInvalidArgument, "shards 0 to 0 are missing"));
  EXPECT_THAT(ValidateModMap(Map("0,7 9,15")),
              FailsWith(absl::StatusCode::kInvalidArgument, "shards 8 to 8 are missing"));
  EXPECT_EQ(ModShardCount(Map("0,7 8,15")), 16u);
}

TEST(ModShard, TheCountNeverChanges) {
  EXPECT_OK(ValidateModUpdate(Map("0,15"), Map("0,3 4,15")));
  EXPECT_THAT(ValidateModUpdate(Map("0,15"), Map("0,31")),
              FailsWith(absl::StatusCode::kFailedPrecondition, "32 shards where there are 16"));
  EXPECT_THAT(ValidateModUpdate(Map("0,15"), Map("0,7 9,16")),
              FailsWith(absl::StatusCode::kInvalidArgument, "missing"));
}

}  // namespace
}  // namespace kvstore
