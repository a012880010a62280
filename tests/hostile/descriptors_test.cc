#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "assembly/open_router.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// A store in a process that has no file descriptors left.
namespace kvstore {
namespace {

/// Uses up all file descriptors for as long as it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

absl::Status Put(KVStore& store, int n) {
  const std::string value(size_t{1} << 20, 'v');
  const CellWrite cell{"c", value, 1};
  return store.PutRow("rows", "r" + std::to_string(n), {&cell, 1}, {}).status();
}

TEST(Descriptors, WritesGoOnWhenThereAreSomeAgain) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "the UBSan of this build looks through a pipe whether memory can be read, and finds that none can";
#endif
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const auto router, OpenRouter({.data = dir / "store"}));
  ASSERT_OK(router->CreateDataset({.name = "rows"}));
  int written = 0;
  {
    const NoDescriptors none;
    absl::Status put;
    // Until the write-ahead log needs another file.
    for (; written < 1'000 && put.ok(); ++written) put = Put(*router, written);
    EXPECT_EQ(put.code(), absl::StatusCode::kUnavailable) << put;
    EXPECT_FALSE(router->CheckWrites().ok());
    // Later writes fail as well, as long as there are no descriptors.
    EXPECT_EQ(Put(*router, written).code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(router->CheckWrites().ok());
  }
  EXPECT_OK(router->CheckWrites());
  EXPECT_OK(Put(*router, written));
  ASSERT_OK_AND_ASSIGN(const auto row, router->GetRow("rows", "r0", {}));
  EXPECT_EQ(row.items.size(), 1U);
}

}  // namespace
}  // namespace kvstore
