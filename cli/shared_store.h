#pragma once

#include <memory>
#include <string>

#include "backend_api/backend.h"
#include "backend_api/write_log.h"
#include "backup/create.h"
#include "kvstore_api/open.h"

/// Backups of an embedded store whose catalog is in ZooKeeper: with its files they have what the catalog says
/// of it.
namespace kvstore::cli {

/// Returns how checkpoints of the store are made. They have, beside the engine's files,
///
///   catalog.json, migrations/*.json  the entries and records of the datasets on this backend, as if the
///                                    catalog were in the folder, so that a restored folder can be opened
///   zookeeper.json                   all that processes share (catalog/shared_nodes.h), so that a ZooKeeper
///                                    that is lost can be filled again
///
/// Their errors are also those of ZooKeeper; UNAVAILABLE if datasets come and go all the time.
///
/// engine   the store's embedded backend; must outlive the function.
/// backend  the name that datasets have for it.
backup::CheckpointMaker SharedCheckpoints(Backend& engine, std::string backend, Coordination coordination);

/// Returns a log whose schema has the entries and records of the datasets on this backend. While ZooKeeper
/// does not answer, they are those that were read last.
std::unique_ptr<WriteLog> SharedLog(std::unique_ptr<WriteLog> log, std::string backend,
                                    Coordination coordination);

}  // namespace kvstore::cli
