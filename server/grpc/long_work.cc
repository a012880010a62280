#include "server/grpc/long_work_call.h"

#include "server/call/served_parts.h"

namespace kvstore::server {

absl::StatusOr<v1::CompactResponse::Result> DoLongWork(Core& core, const v1::CompactRequest& request,
                                                       const Progress& progress) {
  const auto result = core.router.Compact(request.dataset(), progress);
  if (!result.ok()) return result.status();
  v1::CompactResponse::Result told;
  told.set_bytes_before(result->bytes_before);
  told.set_bytes_after(result->bytes_after);
  told.set_expired_cells(result->expired_cells);
  told.set_surplus_cells(result->surplus_cells);
  return told;
}

absl::StatusOr<v1::CreateBackupResponse::Result> DoLongWork(Core& core,
                                                            const v1::CreateBackupRequest& request,
                                                            const Progress& progress) {
  const auto backups = BackupsOf(core);
  if (!backups.ok()) return backups.status();
  const auto made = (*backups)->CreateBackup(request.dataset(), progress);
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
