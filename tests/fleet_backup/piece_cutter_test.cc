#include "fleet_backup/piece_cutter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "fleet_backup/piece_sender.h"
#include "tests/support/status_matchers.h"

/// Where a stream is cut, and how pieces are packed.
namespace kvstore::fleet_backup {
namespace {

using absl::StatusCode;
using testing::FailsWith;

/// The pieces of a stream that comes in blocks of this size.
std::vector<std::string> Cut(const std::string& stream, size_t block = size_t{1} << 20) {
  std::vector<std::string> pieces;
  PieceCutter cutter([&](std::string piece) {
    pieces.push_back(std::move(piece));
    return absl::OkStatus();
  });
  for (size_t at = 0; at < stream.size(); at += block) {
    EXPECT_OK(cutter.Add(std::string_view(stream).substr(at, block)));
  }
  EXPECT_OK(cutter.Finish());
  return pieces;
}

std::string RandomBytes(uint64_t seed, size_t size) {
  std::mt19937_64 random(seed);
  std::string bytes(size, ' ');
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = random();
    std::copy_n(reinterpret_cast<const char*>(&word), 8, bytes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return bytes;
}

std::string Joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

constexpr size_t kMiB = size_t{1} << 20;

TEST(PieceCutter, PiecesAreTheStream) {
  const std::string stream = RandomBytes(1, 64 * kMiB);
  const auto pieces = Cut(stream);
  EXPECT_EQ(Joined(pieces), stream);
  EXPECT_GT(pieces.size(), 3u);
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    EXPECT_GE(pieces[i].size(), PieceCutter::kLeastBytes);
    EXPECT_LE(pieces[i].size(), PieceCutter::kMostBytes);
  }
  EXPECT_TRUE(Cut("").empty());
  EXPECT_EQ(Cut("x"), std::vector<std::string>{"x"});
}

TEST(PieceCutter, HowTheBytesComeChangesNothing) {
  const std::string stream = RandomBytes(2, 24 * kMiB);
  const auto pieces = Cut(stream);
  for (const size_t block : {size_t{1013}, size_t{65'536}, 5 * kMiB, stream.size()}) {
    EXPECT_EQ(Cut(stream, block), pieces) << block;
  }
}

TEST(PieceCutter, WhatIsInsertedChangesThePiecesAroundItAlone) {
  const std::string stream = RandomBytes(3, 96 * kMiB);
  const auto before = Cut(stream);
  std::string other = stream;
  other.insert(40 * kMiB + 17, "a table that is new");
  const auto after = Cut(other);
  const std::set<std::string> known(before.begin(), before.end());
  const auto fresh = std::count_if(after.begin(), after.end(),
                                   [&](const std::string& piece) { return !known.contains(piece); });
  EXPECT_GE(fresh, 1);
  EXPECT_LE(fresh, 3);
  EXPECT_EQ(Joined(after), other);
}

TEST(PieceCutter, WhatHasNoPatternOfItsOwnIsCutAtTheLimit) {
  const auto pieces = Cut(std::string(100 * kMiB, '\0'));
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[0].size(), PieceCutter::kMostBytes);
  EXPECT_EQ(pieces[0], pieces[1]);
}

// If pieces were cut elsewhere by a later version, everything would be sent again.
TEST(PieceCutter, WhereItCutsIsPinned) {
  std::string stream;
  for (uint32_t i = 0; stream.size() < 32 * kMiB; ++i) stream += std::to_string(i * 2'654'435'761U) + ",";
  std::vector<size_t> sizes;
  for (const std::string& piece : Cut(stream)) sizes.push_back(piece.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{7560470, 4521520, 5771433, 4456683, 6217233, 5027093}));
}

TEST(PieceCutter, AnErrorOfTheTakerEndsIt) {
  PieceCutter cutter([](const std::string&) { return absl::UnavailableError("status 503"); });
  EXPECT_THAT(cutter.Add(std::string(64 * kMiB, 'x')), FailsWith(StatusCode::kUnavailable, "503"));
}

TEST(PieceSender, APieceIsUnpackedAsItWas) {
  for (const std::string& piece : {std::string(), std::string("x"), RandomBytes(4, kMiB)}) {
    EXPECT_EQ(*UnpackPiece(PackPiece(piece)), piece);
  }
  EXPECT_THAT(UnpackPiece("no frame"), FailsWith(StatusCode::kDataLoss, "not a piece"));
  EXPECT_THAT(UnpackPiece(PackPiece(std::string(PieceCutter::kMostBytes + 1, 'x'))),
              FailsWith(StatusCode::kDataLoss, "not a piece"));
  std::string damaged = PackPiece(RandomBytes(5, kMiB));
  damaged.resize(damaged.size() / 2);
  EXPECT_THAT(UnpackPiece(damaged), FailsWith(StatusCode::kDataLoss, "not what it was"));
}

}  // namespace
}  // namespace kvstore::fleet_backup
