#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "assembly/backend_type.h"
#include "assembly/built_in_types.h"
#include "assembly/open_router.h"
#include "backup/create.h"
#include "backup/log_restore.h"
#include "backup/log_shipper.h"
#include "backup/restore.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "blobstore/open_blob_store.h"
#include "tests/support/eventually.h"
#include "tests/support/faulty_blobs.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// The fixture of tests of the log of a real store, which is sent after its backups.
namespace kvstore::testing {

class BackupLog : public ::testing::Test {
 protected:
  void SetUp() override {
    blobs_ = Open();
    router_ = *OpenRouter({.data = dir_ / "store", .keep_logs = true});
    ASSERT_OK(router_->CreateDataset({.name = "rows"}));
  }
  void TearDown() override {
    shipper_.reset();
    SetFailPointHook(nullptr);
  }

  std::unique_ptr<BlobStore> Open() const { return *OpenBlobStore("file:" + (dir_ / "blobs").string()); }
  Backend& engine() { return **router_->keeper().FindBackend(kRocksDb); }
  absl::StatusOr<backup::Manifest> MakeBackup(BlobStore& blobs) {
    return backup::CreateBackup([this] { return engine().MakeCheckpoint(); }, blobs);
  }
  /// Begins to send the log at short intervals.
  void Ship(uint64_t ship_ms = 20) {
    shipper_ = std::make_unique<backup::LogShipper>(
        BuiltInBackendTypes().Find(kRocksDb)->open_log(engine()),
        [this] { return std::make_unique<FaultyBlobs>(*blobs_, fault_, lost_); },
        [this](BlobStore& blobs) { return MakeBackup(blobs); },
        backup::ShipperOptions{.ship_ms = ship_ms, .mark_ms = 5, .retry_ms = 20});
    ASSERT_TRUE(Eventually([this] { return shipper_->figures().chains > 0; }));
  }
  /// Waits until all that was written before now was sent.
  void AwaitShipped() {
    const uint64_t now = WallClockMs();
    ASSERT_TRUE(Eventually([&] { return shipper_->figures().shipped_until_ms > now; }))
        << shipper_->figures().last_error;
  }
  /// Waits until a mark was made that begins now.
  static void AwaitMark() {
    std::atomic<int> marks{0};
    SetFailPointHook([&](std::string_view point) {
      if (point == "log-mark") ++marks;
    });
    EXPECT_TRUE(Eventually([&] { return marks >= 2; }));
    SetFailPointHook(nullptr);
  }
  void Put(const std::string& row, const std::string& value, const std::string& dataset = "rows") {
    const CellWrite cell{"x", value, std::nullopt};
    ASSERT_OK(router_->PutRow(dataset, row, {&cell, 1}, {}));
  }
  /// Returns a time after all writes so far, and before all that follow.
  uint64_t Now() {
    AwaitShipped();
    const uint64_t now = shipper_->figures().shipped_until_ms;
    EXPECT_TRUE(Eventually([&] { return WallClockMs() > now; }));
    return now;
  }
  std::unique_ptr<Router> RestoreAt(uint64_t at_ms, backup::Replayed& replayed) {
    const std::filesystem::path folder = dir_ / ("restored-" + std::to_string(++restores_));
    const auto found = backup::FindBackupBefore(*blobs_, at_ms);
    EXPECT_OK(found);
    if (!found.ok()) return nullptr;
    const backup::Manifest& base = found->manifest;
    EXPECT_OK(
        backup::RestoreBackup(base, *blobs_, folder, nullptr, [&](const std::filesystem::path& restored) {
          const auto done = backup::ReplayLog(base, *blobs_, at_ms, restored,
                                              BuiltInBackendTypes().Find(kRocksDb)->open_replay);
          if (done.ok()) replayed = *done;
          return done.status();
        }));
    auto router = OpenRouter({.data = folder, .create_if_missing = false});
    EXPECT_OK(router);
    return router.ok() ? *std::move(router) : nullptr;
  }
  /// The newest value of a row's column; "none" if there is none.
  static std::string Get(Router& router, const std::string& row) {
    const auto read = router.GetRow("rows", row, {});
    if (!read.ok()) return std::string(read.status().message());
    return read->items.empty() ? "none" : read->items[0].cells[0].value;
  }

  const TempDir dir_;
  /// How the store of blobs fails to which the log is sent (FaultyBlobs); a test sets them before Ship.
  FaultyBlobs::Fault fault_;
  FaultyBlobs::Fault lost_;
  std::unique_ptr<BlobStore> blobs_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<backup::LogShipper> shipper_;
  int restores_ = 0;
};

}  // namespace kvstore::testing
