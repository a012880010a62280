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
/// - In a ReadAheadScope the kernel is not asked to read ahead.
rocksdb::Env* StoreEnv();

/// While it lives, an iterator with which this thread reads blocks of a file in order gets them in pieces,
/// which grow from 8 to 256 KiB, into a buffer. RocksDB otherwise asks the kernel to have them ready, and
/// reads each block of 4 KiB by a call of its own; that took a fifth of a scan of files that the kernel has
/// in memory. The buffer lives as long as the iterator, so this is for iterators that are not kept for other
/// reads.
class ReadAheadScope {
 public:
  ReadAheadScope();
  ~ReadAheadScope();
  ReadAheadScope(const ReadAheadScope&) = delete;
  ReadAheadScope& operator=(const ReadAheadScope&) = delete;

 private:
  const bool before_;
};

}  // namespace kvstore::rocks
