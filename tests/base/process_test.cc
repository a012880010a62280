#include "base/process.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace kvstore {
namespace {

TEST(Process, TheUserIsNamedWithoutTheEnvironment) {
  const char* const before = std::getenv("USER");
  const std::optional<std::string> user =
      before == nullptr ? std::nullopt : std::optional<std::string>(before);
  const passwd* const entry = ::getpwuid(::geteuid());
  const std::string expected = entry != nullptr ? entry->pw_name : std::to_string(::geteuid());
  ::unsetenv("USER");
  EXPECT_EQ(UserAndHost().substr(0, expected.size() + 1), expected + "@");
  ::setenv("USER", "somebody else", 1);
  EXPECT_EQ(UserAndHost().substr(0, expected.size() + 1), expected + "@");
  EXPECT_EQ(ProcessName(), UserAndHost() + ", process " + std::to_string(::getpid()));
  if (user) {
    ::setenv("USER", user->c_str(), 1);
  } else {
    ::unsetenv("USER");
  }
}

}  // namespace
}  // namespace kvstore
