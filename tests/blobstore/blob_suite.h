#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "blobstore/blob_store.h"

namespace kvstore::testing {

/// A kind of blob store.
struct BlobStoreKind {
  std::string name;
  /// Opens a store; the same store for the same `prefix`, and another one for another.
  std::function<std::unique_ptr<BlobStore>(const std::string& prefix)> open;
  bool keeps_checksums = false;  ///< Whether Stat gives checksums.
};

inline void PrintTo(const BlobStoreKind& kind, std::ostream* out) { *out << kind.name; }

/// The promises of BlobStore, which each kind must keep (blob_suite.cc). Each test has a store of its own.
class BlobSuite : public ::testing::TestWithParam<BlobStoreKind> {
 protected:
  void SetUp() override;

  /// Opens the same store again.
  std::unique_ptr<BlobStore> OpenAgain() const { return GetParam().open(prefix_); }

  std::string prefix_;
  std::unique_ptr<BlobStore> store_;
};

}  // namespace kvstore::testing
