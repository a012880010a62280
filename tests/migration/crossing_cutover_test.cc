#include "tests/migration/crossing_fixture.h"

/// Cutovers that are given up because of what happens to the other side while writes are held.
namespace kvstore::testing {
namespace {

class GivenUpCutoverTest : public FaultyMySqlTest {
 protected:
  /// Begins a cutover which has a unit to copy while writes are held, when `fault` begins.
  void CutOver(std::atomic<bool>& fault) {
    SetFailPointHook([this, &fault, put = false](std::string_view point) mutable {
      if (point == "cutover.drained" && !put) {
        put = true;
        Put("row000", "old");
      }
      if (point == "cutover.frozen") fault = true;
    });
    store_->Do("cutover", "events");
  }
  void AwaitCopied() {
    ASSERT_TRUE(Eventually([&] { return store_->Do("status", "events")["lag"]["units"] == 0; }));
  }
  std::string Value(const std::string& row) {
    const auto found = store_->router().GetRow("events", row, {});
    EXPECT_OK(found);
    return found.ok() && !found->items.empty() ? found->items[0].cells[0].value : "";
  }
};

/// A write that the cutover had sent arrives when clients have long written over it.
TEST_F(GivenUpCutoverTest, ItsLateWriteIsRefused) {
  OpenReady();
  CutOver(faults_.delays);
  ASSERT_TRUE(Eventually([&] { return faults_.late_epoch != 0; }));
  store_->Await("events", "ready");
  SetFailPointHook(nullptr);
  Put("row000", "new");
  AwaitCopied();
  const auto mysql = store_->router().keeper().FindBackend("mysql");
  ASSERT_OK(mysql);
  auto spec = store_->router().GetDataset("events");
  ASSERT_OK(spec);
  spec->backend = "mysql";
  spec->engine.clear();
  const auto copy = (*mysql)->OpenForMigration(*spec);
  ASSERT_OK(copy);
  EXPECT_THAT((*copy)->Replace(faults_.late_epoch, faults_.late, /*fresh=*/false),
              FailsWith(absl::StatusCode::kAborted, ""));
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  EXPECT_EQ(Value("row000"), "new");
}

TEST_F(GivenUpCutoverTest, AHostThatHangsHoldsWritesNoLongerThanTheyMayBeHeld) {
  OpenReady();
  CutOver(faults_.hangs);
  ASSERT_TRUE(Eventually([&] { return faults_.cut_off > 0; })) << store_->Do("status", "events").dump(1);
  SetFailPointHook(nullptr);
  // Clients write again, although the host still hangs.
  Put("row000", "new");
  faults_.hangs = false;
  store_->Await("events", "ready");
  EXPECT_THAT(store_->Do("status", "events")["events"].dump(),
              ::testing::HasSubstr("the cutover was given up"));
  AwaitCopied();
  store_->Do("cutover", "events");
  store_->Await("events", "reversible");
  EXPECT_EQ(Value("row000"), "new");
}

}  // namespace
}  // namespace kvstore::testing
