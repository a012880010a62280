#include "backend_api/marker.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/support/random.h"
#include "tests/support/status_matchers.h"

namespace kvstore {
namespace {

using testing::FailsWith;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Clients store markers across upgrades, so these must never change.
TEST(Marker, Golden) {
  const RowPosition position{.column = "click", .cells = 2, .timestamp = 1'700'000'000'000};
  const std::string row = SealRowMarker(7, "user:1", position);
  EXPECT_EQ(row, "AXIAAAACAAABi8_laABjbGlja-vZuNOhbUSv");
  EXPECT_EQ(*OpenRowMarker(7, "user:1", row), position);
  const ScanPosition between{.row = "user:1", .inside = {}};
  const std::string scan = SealScanMarker(7, between);
  EXPECT_EQ(scan, "AXMABnVzZXI6MTXvL3EhCoOY");
  EXPECT_EQ(*OpenScanMarker(7, scan), between);
  const ScanPosition ordered{.row = "user:1", .inside = {}, .order = "mysql"};
  const std::string in_order = SealScanMarker(7, ordered);
  EXPECT_EQ(in_order, "AW8ABW15c3FsAAZ1c2VyOjGLkDLFOTMW-g");
  EXPECT_EQ(*OpenScanMarker(7, in_order), ordered);
  const MappingEntry last{.to = 5, .sequence = 9};
  const std::string mapping = SealMappingMarker(7, 3, false, last);
  EXPECT_EQ(mapping, "AW0AAAAAAAAACQAAAAAAAAAFsFtzx4qTZQk");
  EXPECT_EQ(*OpenMappingMarker(7, 3, false, mapping), last);
  const std::string objects = SealObjectScanMarker(7, 211'174'952'009'730);
  EXPECT_EQ(objects, "AWkAAMAQAAAAAjVkk8c5OloF");
  EXPECT_EQ(*OpenObjectScanMarker(7, objects), 211'174'952'009'730);
  const MappingPosition next{.from = 3, .to = 6};
  const std::string mappings = SealMappingScanMarker(7, next);
  EXPECT_EQ(mappings, "AXAAAAAAAAAAAwAAAAAAAAAGktSiVvgt02c");
  EXPECT_EQ(*OpenMappingScanMarker(7, mappings), next);
}

TEST(Marker, IsRefusedElsewhere) {
  const std::string row = SealRowMarker(7, "user:1", {.column = "click"});
  EXPECT_THAT(OpenRowMarker(8, "user:1", row), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenRowMarker(7, "user:2", row), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenScanMarker(7, row), FailsWith(kInvalid, "marker"));
  const std::string scan = SealScanMarker(7, {.row = "user:1"});
  EXPECT_THAT(OpenScanMarker(8, scan), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenRowMarker(7, "user:1", scan), FailsWith(kInvalid, "marker"));
  const std::string mapping = SealMappingMarker(7, 3, false, {});
  EXPECT_THAT(OpenMappingMarker(7, 3, true, mapping), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenMappingMarker(7, 4, false, mapping), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenMappingMarker(8, 3, false, mapping), FailsWith(kInvalid, "marker"));
  const std::string objects = SealObjectScanMarker(7, 5);
  EXPECT_THAT(OpenObjectScanMarker(8, objects), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenMappingScanMarker(7, objects), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenScanMarker(7, objects), FailsWith(kInvalid, "marker"));
  const std::string mappings = SealMappingScanMarker(7, {});
  EXPECT_THAT(OpenMappingScanMarker(8, mappings), FailsWith(kInvalid, "marker"));
  EXPECT_THAT(OpenMappingMarker(7, 0, false, mappings), FailsWith(kInvalid, "marker"));
}

TEST(Marker, IsRefusedWhenAnyCharacterIsChangedOrLost) {
  const std::string good = SealRowMarker(7, "user:1", {.column = "click"});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_THAT(OpenRowMarker(7, "user:1", changed), FailsWith(kInvalid, "marker")) << i;
    EXPECT_THAT(OpenRowMarker(7, "user:1", good.substr(0, i)), FailsWith(kInvalid, "marker")) << i;
  }
  for (const char* other : {"x", "=", "\xFF", " ", "AAAA"}) {
    EXPECT_THAT(OpenRowMarker(7, "user:1", good + other), FailsWith(kInvalid, "marker")) << other;
  }
}

std::string Bytes(size_t min, size_t max) {
  return testing::Random(*rc::gen::arbitrary<uint64_t>()).HostileBytes(min, max);
}

RowPosition DrawPosition() {
  return {.column = Bytes(0, 20),
          .cells = *rc::gen::arbitrary<uint32_t>(),
          .timestamp = *rc::gen::arbitrary<uint64_t>()};
}

RC_GTEST_PROP(MarkerProperty, EveryPositionComesBack, (uint64_t incarnation)) {
  const std::string row = Bytes(1, 20);
  const RowPosition position = DrawPosition();
  RC_ASSERT(*OpenRowMarker(incarnation, row, SealRowMarker(incarnation, row, position)) == position);
  ScanPosition scan{.row = row, .inside = {}};
  if (*rc::gen::arbitrary<bool>()) scan.inside = position;
  if (*rc::gen::arbitrary<bool>()) scan.order = Bytes(1, 300);
  RC_ASSERT(*OpenScanMarker(incarnation, SealScanMarker(incarnation, scan)) == scan);
}

RC_GTEST_PROP(MarkerProperty, ArbitraryTextIsRefused, (const std::string& text)) {
  RC_ASSERT(!OpenRowMarker(1, "r", text).ok());
  RC_ASSERT(!OpenScanMarker(1, text).ok());
  RC_ASSERT(!OpenMappingMarker(1, 2, false, text).ok());
  RC_ASSERT(!OpenObjectScanMarker(1, text).ok());
  RC_ASSERT(!OpenMappingScanMarker(1, text).ok());
}

}  // namespace
}  // namespace kvstore
