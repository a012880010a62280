#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "backend_api/outcome.h"
#include "tests/server/gated_servers.h"
#include "tests/support/status_matchers.h"
#include "wire/convert.h"

/// The errors of single entries of a batch keep their meaning on their way to the caller.
namespace kvstore {
namespace {

using testing::GatedServersTest;

absl::Status OverTheWire(const absl::Status& status) {
  v1::Error message;
  wire::ToWire(status, message);
  v1::Error read;
  EXPECT_TRUE(read.ParseFromString(message.SerializeAsString()));
  return wire::FromWire(read);
}

TEST(EntryErrors, KeepWhetherTheyAreInDoubtAndWhetherTheDatasetMigrates) {
  const absl::Status lost = absl::UnavailableError("the connection was lost");
  EXPECT_EQ(OverTheWire(lost), lost);
  EXPECT_FALSE(IsInDoubt(OverTheWire(lost)));
  EXPECT_EQ(OverTheWire(MarkInDoubt(lost)), MarkInDoubt(lost));
  EXPECT_EQ(OverTheWire(WritesHeldError("held")), ServedElsewhereError("held"));
  // A router that made a GoneError has looked into the catalog again already.
  EXPECT_FALSE(IsMigrating(OverTheWire(GoneError(absl::NotFoundError("no table")))));
  // In doubt comes first, because routers must not repeat what may have happened.
  EXPECT_FALSE(IsMigrating(OverTheWire(MarkInDoubt(ServedElsewhereError("lost, then migrated")))));
}

TEST(EntryErrors, ArePlainOnesAsTheyWere) {
  // The bytes of a version that had no outcome: code 5, message "no".
  const std::string golden("\x08\x05\x12\x02no", 6);
  v1::Error message;
  wire::ToWire(absl::NotFoundError("no"), message);
  EXPECT_EQ(message.SerializeAsString(), golden);
  v1::Error read;
  ASSERT_TRUE(read.ParseFromString(golden));
  EXPECT_EQ(wire::FromWire(read), absl::NotFoundError("no"));
  // An older client ignores the fields after that, which it does not know.
  wire::ToWire(MarkInDoubt(absl::NotFoundError("no")), message);
  EXPECT_TRUE(message.SerializeAsString().starts_with(golden));
}

TEST_F(GatedServersTest, AnEntryInDoubtIsInDoubtForTheClientToo) {
  gate_->Set([](std::string_view, std::string_view row) -> absl::Status {
    if (row == "lost") return MarkInDoubt(absl::UnavailableError("lost at COMMIT"));
    return row == "failed" ? absl::UnavailableError("no connection") : absl::OkStatus();
  });
  const CellWrite cell{"c", "v", 1};
  const std::vector<RowWrite> writes = {
      {"good", {&cell, 1}, {}}, {"lost", {&cell, 1}, {}}, {"failed", {&cell, 1}, {}}};
  const std::vector<RowDelete> deletes = {{"good", {}}, {"lost", {}}, {"failed", {}}};
  // Through one server, and through another one in front of it.
  for (KVStore* const store : {store_.get(), front_store_.get()}) {
    ASSERT_OK_AND_ASSIGN(const auto put, store->PutRows("other", writes));
    ASSERT_OK_AND_ASSIGN(const auto deleted, store->DeleteRows("other", deletes));
    EXPECT_OK(put[0]);
    EXPECT_OK(deleted[0]);
    for (const absl::Status& status : {put[1].status(), deleted[1]}) {
      EXPECT_TRUE(absl::IsUnavailable(status));
      EXPECT_TRUE(IsInDoubt(status)) << status;
    }
    for (const absl::Status& status : {put[2].status(), deleted[2]}) {
      EXPECT_TRUE(absl::IsUnavailable(status));
      EXPECT_FALSE(IsInDoubt(status)) << status;
    }
  }
}

}  // namespace
}  // namespace kvstore
