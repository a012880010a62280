#pragma once

#include <rocksdb/env.h>

namespace kvstore::rocks {

/// Returns the environment that RocksDB runs in: the file system of this machine, with three differences.
/// There is one for the process, and it lives as long as the process.
///
/// - An error for want of file descriptors is marked as retryable, so that RocksDB accepts writes again when
///   it is resumed (Engine::Write). It would otherwise demand to be opened again.
/// - RocksDB's OPTIONS files cannot be created. RocksDB writes the options of all families each time that a
///   family is created, and reads them back, so that creating a thousand datasets would take minutes; nothing
///   here reads them. RocksDB goes on without the file.
/// - The kernel is not asked to read ahead: RocksDB does it, for those who read in order.
rocksdb::Env* StoreEnv();

}  // namespace kvstore::rocks
