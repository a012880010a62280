#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "backends/rocksdb/backend.h"
#include "tests/backend_suite/suite.h"
#include "tests/support/random.h"

namespace kvstore::testing {

/// Opens the backend in a folder, with little memory for its buffers, so that it makes files early.
///
/// cache_answers  false: each read reads; for tests of what that costs.
absl::StatusOr<std::unique_ptr<RocksDbBackend>> OpenRocksDb(const std::filesystem::path& dir,
                                                            std::span<const DatasetSpec> known,
                                                            bool cache_answers = true);

/// Flushes a memtable to a file, or compacts some of the files into a level, chosen at random.
void Rearrange(RocksDbBackend& backend, const DatasetSpec& spec, Random& random);

/// While it lives, no file of this process can grow: a write that needs space fails, as on a full disk.
class NoFileGrows {
 public:
  NoFileGrows() {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit none = before_;
    none.rlim_cur = 0;
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~NoFileGrows() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    ::signal(SIGXFSZ, handler_);
  }
  NoFileGrows(const NoFileGrows&) = delete;
  NoFileGrows& operator=(const NoFileGrows&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

/// Describes the backend to the suites, with both functions.
UnderTest RocksDb();

}  // namespace kvstore::testing
