#pragma once

#include <rocksdb/env.h>

namespace kvstore::rocks {

/// The file system of this machine, but that RocksDB's OPTIONS files cannot be made there. RocksDB writes one
/// of all families each time that a family is made, and reads it back, so that a thousand datasets would take
/// minutes to make; nobody here reads them. It goes on without.
///
/// One for the process; lives to its end.
rocksdb::Env* EnvWithoutOptionsFiles();

}  // namespace kvstore::rocks
