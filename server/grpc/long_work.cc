#include "server/call/served_parts.h"
#include "server/grpc/long_work_call.h"

namespace kvstore::server {
namespace {

/// Returns what sends the progress of work that counts one thing.
template <typename Response>
Progress ProgressOf(const LongWork<Response>& work) {
  return [&work](uint64_t done, uint64_t total) {
    Response message;
    message.mutable_progress()->set_done(done);
    message.mutable_progress()->set_total(total);
    return work.progress(std::move(message));
  };
}

}  // namespace

absl::StatusOr<v1::CompactResponse::Result> DoLongWork(const v1::CompactRequest& request,
                                                       const LongWork<v1::CompactResponse>& work) {
  const auto result = work.core.router.Compact(request.dataset(), ProgressOf(work));
  if (!result.ok()) return result.status();
  v1::CompactResponse::Result told;
  told.set_bytes_before(result->bytes_before);
  told.set_bytes_after(result->bytes_after);
  told.set_expired_cells(result->expired_cells);
  told.set_surplus_cells(result->surplus_cells);
  return told;
}

absl::StatusOr<v1::CreateBackupResponse::Result> DoLongWork(const v1::CreateBackupRequest& request,
                                                            const LongWork<v1::CreateBackupResponse>& work) {
  const auto backups = BackupsOf(work.core);
  if (!backups.ok()) return backups.status();
  const auto made = (*backups)->CreateBackup(request.dataset(), ProgressOf(work));
  if (!made.ok()) return made.status();
  v1::CreateBackupResponse::Result told;
  told.set_id(made->id);
  told.set_url(made->url);
  told.set_began_ms(made->began_ms);
  told.set_finished_ms(made->finished_ms);
  told.set_bytes(made->bytes);
  told.set_files(made->files);
  told.set_units(made->units);
  told.set_sent_bytes(made->sent_bytes);
  told.set_sent_objects(made->sent_objects);
  return told;
}

}  // namespace kvstore::server
