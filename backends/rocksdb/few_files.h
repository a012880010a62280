#pragma once

#include <rocksdb/env.h>

#include <memory>

namespace kvstore::rocks {

/// The machine's files for a RocksDB that goes on, when it is told to (Engine::Write), after there was no
/// file descriptor for another one. Else it would take that for an error behind which it must be opened
/// again.
std::unique_ptr<rocksdb::Env> NewEnvOfFewFiles();

}  // namespace kvstore::rocks
