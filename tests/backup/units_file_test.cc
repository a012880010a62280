#include "backup/units_file.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/big_endian.h"
#include "blobstore/sha256.h"
#include "tests/support/status_matchers.h"

/// The stored form of units, and what is refused.
namespace kvstore::backup {
namespace {

using absl::StatusCode;
using testing::FailsWith;

std::string FileOf(const std::vector<Unit>& units) {
  UnitsWriter writer;
  for (const Unit& unit : units) EXPECT_OK(writer.Add(unit));
  return writer.Take();
}

absl::StatusOr<std::vector<Unit>> Read(std::string_view file) {
  std::vector<Unit> units;
  auto status = ReadUnits(file, [&](std::vector<Unit> some) {
    for (Unit& unit : some) units.push_back(std::move(unit));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return units;
}

/// Units with one large and many small ones, so that there are several frames.
std::vector<Unit> Examples() {
  std::mt19937_64 random(1);
  std::vector<Unit> units;
  for (int i = 0; i < 3'000; ++i) {
    Unit unit{.key = "key" + std::to_string(10'000 + i), .cells = {}};
    for (int cell = i % 3; cell >= 0; --cell) {
      std::string value(i == 1'000 ? 3 * kFrameBytes : random() % 1'000, 'v');
      for (char& c : value) c = static_cast<char>(random());
      unit.cells.push_back({.timestamp = 7u + static_cast<uint64_t>(cell), .value = std::move(value)});
    }
    units.push_back(std::move(unit));
  }
  return units;
}

// Backups that were made by any version must be restored by all later ones, so this form never changes. What
// zstd makes of the units may change; that it can be read does not.
TEST(UnitsFile, ItsFormIsPinned) {
  const std::string file = FileOf({{"a", {{5, "v"}, {4, ""}}}, {"b", {}}});
  const std::string units(
      "\0\0\0\x01"
      "a\0\0\0\x02\0\0\0\0\0\0\0\x05\0\0\0\x01v\0\0\0\0\0\0\0\x04\0\0\0\0"
      "\0\0\0\x01"
      "b\0\0\0\0",
      43);
  EXPECT_EQ(file.substr(0, 8), "KVUNITS1");
  EXPECT_EQ(ReadBigEndian<uint32_t>(file.substr(8)), file.size() - 16);
  EXPECT_EQ(ReadBigEndian<uint32_t>(file.substr(12)), units.size());
  // The frame of a version of zstd, which does not compress so few bytes.
  const std::string written = std::string("KVUNITS1\0\0\0\x34\0\0\0\x2b", 16) +
                              std::string("\x28\xb5\x2f\xfd\x20\x2b\x59\x01\0", 9) + units;
  ASSERT_OK_AND_ASSIGN(const auto read, Read(written));
  EXPECT_EQ(read, (std::vector<Unit>{{"a", {{5, "v"}, {4, ""}}}, {"b", {}}}));
}

TEST(UnitsFile, WhatWasWrittenIsRead) {
  const std::vector<Unit> units = Examples();
  ASSERT_OK_AND_ASSIGN(const auto read, Read(FileOf(units)));
  EXPECT_EQ(read, units);
  EXPECT_EQ(Read(FileOf({})).value(), std::vector<Unit>());
}

TEST(UnitsFile, AWriterBeginsAnother) {
  UnitsWriter writer;
  ASSERT_OK(writer.Add({"a", {{1, "v"}}}));
  EXPECT_GT(writer.bytes(), 0u);
  const std::string first = writer.Take();
  EXPECT_EQ(writer.bytes(), 0u);
  ASSERT_OK(writer.Add({"a", {{1, "v"}}}));
  EXPECT_EQ(writer.Take(), first);
}

TEST(UnitsFile, NoDamageIsTakenForUnits) {
  const std::vector<Unit> units = {{"a", {{5, std::string(100, 'v')}}}, {"b", {{4, "w"}}}};
  const std::string file = FileOf(units);
  for (size_t size = 0; size < file.size(); ++size) {
    if (size == 8) continue;  // a file without units
    EXPECT_THAT(Read(file.substr(0, size)), FailsWith(StatusCode::kDataLoss, "does not decode")) << size;
  }
  for (size_t at = 0; at < file.size(); ++at) {
    for (const int bit : {1, 64}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      // A checksum of the whole file is in the manifest; this must only not crash, or read other keys twice.
      const auto read = Read(changed);
      if (read.ok()) continue;
      EXPECT_THAT(read, FailsWith(StatusCode::kDataLoss, "does not decode")) << at;
    }
  }
}

TEST(UnitsFile, UnitsThatAreNotInOrderAreRefused) {
  EXPECT_THAT(Read(FileOf({{"b", {}}, {"a", {}}})), FailsWith(StatusCode::kDataLoss, "not in order"));
  EXPECT_THAT(Read(FileOf({{"a", {}}, {"a", {}}})), FailsWith(StatusCode::kDataLoss, "not in order"));
}

TEST(UnitsFile, CountsAreCheckedBeforeAnythingIsMadeOfThem) {
  // A unit that says it has 4 billion cells.
  const std::string units(
      "\0\0\0\x01"
      "a\xff\xff\xff\xff",
      9);
  const std::string file = std::string("KVUNITS1\0\0\0\x12\0\0\0\x09", 16) +
                           std::string("\x28\xb5\x2f\xfd\x20\x09\x49\0\0", 9) + units;
  EXPECT_THAT(Read(file), FailsWith(StatusCode::kDataLoss, "a unit is cut off"));
}

}  // namespace
}  // namespace kvstore::backup
