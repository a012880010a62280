#pragma once

#include <rocksdb/env.h>

namespace kvstore::rocks {

/// The file system of this machine, with two differences. One for the process; lives to its end.
///
/// - A RocksDB that had no file descriptor for another file goes on when it is told to (Engine::Write). Else
/// it
///   would take that for an error behind which it must be opened again.
/// - RocksDB's OPTIONS files cannot be made. RocksDB writes one of all families each time that a family is
///   made, and reads it back, so that a thousand datasets would take minutes to make; nobody here reads them.
///   It goes on without.
rocksdb::Env* StoreEnv();

}  // namespace kvstore::rocks
