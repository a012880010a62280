#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "shardops/move.h"

namespace kvstore::shardops {

/// Removes copies of shards from a host. FAILED_PRECONDITION if the map has one of them there: then it is no
/// copy.
absl::Status DropCopies(Fleet& fleet, HostAdmin& host, const MoveRange& shards);

/// The work of one move (move.h), from where it is to its end.
class Mover {
 public:
  /// begins  It does; else it goes on.
  Mover(Fleet& fleet, MoveRecord move, bool begins, const MoveOptions& options)
      : fleet_(fleet), move_(std::move(move)), begins_(begins), options_(options) {}

  absl::StatusOr<Moved> Run();

 private:
  /// In the ledger, until it is finished or cancelled.
  absl::Status Begin();
  absl::Status CheckHosts();
  /// Nothing is in the way on either side.
  absl::Status CheckTables();
  absl::Status CheckMigrations();
  absl::Status Copy();
  absl::Status Follow();
  absl::Status Verify();
  absl::Status Switch();
  /// The shards of `part` change their homes together.
  absl::Status SwitchPart(const MoveRange& part);
  absl::Status Publish(const MoveRange& part);
  /// Shards are where they were taken out of use, and the new pair is as it was.
  absl::Status CheckHomes(const Maps& maps, const MoveRange& part) const;
  absl::Status Release();
  /// Waits until the copy, and the target's slave, are close behind.
  absl::Status CatchUp();
  /// The same, for so long. DEADLINE_EXCEEDED: they are not.
  absl::Status CatchUpWithin(std::chrono::milliseconds wait);
  /// The first shards that have not moved, so many as switch together; none: all have.
  absl::StatusOr<std::optional<MoveRange>> NextPart();
  absl::Status Enter(MoveState state);
  absl::Status Show(std::string_view step, uint64_t done, uint64_t total) const;
  /// "shards db 4-7 from A to B"
  std::string Where() const;

  Fleet& fleet_;
  MoveRecord move_;
  const bool begins_;
  const MoveOptions& options_;
  Moved moved_;
  Held held_;
  std::unique_ptr<HostAdmin> source_;
  std::unique_ptr<HostAdmin> target_;
  std::unique_ptr<HostAdmin> target_slave_;
};

}  // namespace kvstore::shardops
