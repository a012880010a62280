#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace kvstore::testing {

/// Runs the real `kv` on a store of the test's own.
class KvProgram : public ::testing::Test {
 protected:
  /// Runs kv --data STORE arguments...
  Output Kv(std::vector<std::string> arguments, const std::string& input = "") const;
  /// Runs the same; expects exit code 0 and returns standard output.
  std::string Ok(const std::vector<std::string>& arguments, const std::string& input = "") const;
  /// Runs the same; expects exit code 1 with this text on standard error, and nothing on standard output.
  void Fails(const std::vector<std::string>& arguments, const std::string& text) const;
  /// Writes a file and returns its path.
  std::string File(const std::string& name, const std::string& text) const;

  const TempDir dir_;
};

}  // namespace kvstore::testing
