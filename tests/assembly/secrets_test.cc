#include "assembly/secrets.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Secrets : public ::testing::Test {
 protected:
  /// Writes a file that everybody can read, in a folder that everybody comes to.
  fs::path File(const std::string& name, const std::string& text) const {
    fs::permissions(dir_.path(), fs::perms(0755));
    std::ofstream(dir_ / name) << text;
    fs::permissions(dir_ / name, fs::perms(0644));
    return dir_ / name;
  }
  std::vector<std::string> Exposed(const fs::path& file) const {
    const auto config = ReadConfig(file);
    EXPECT_OK(config.status());
    const auto exposed = ExposedSecrets(file, *config);
    EXPECT_OK(exposed.status());
    return *exposed;
  }

  const testing::TempDir dir_;
};

TEST_F(Secrets, AreToldWhereOthersCanReadThem) {
  File("password", "p");
  File("server.pem", "-");
  File("server.key", "-");
  const fs::path file = File("kv.json", R"({"data": "store",
      "backends": {"mysql": {"type": "mysql", "user": "u", "password_file": "password", "zookeeper": "zk"},
                   "west": {"type": "remote", "address": "unix:/w", "token": "t"}}, "default_backend": "west",
      "server": {"tls": {"cert": "server.pem", "key": "server.key"}}})");
  fs::create_directory(dir_ / "store");
  fs::permissions(dir_ / "store", fs::perms(0755));
  EXPECT_THAT(Exposed(file),
              ElementsAre(HasSubstr("kv.json has a secret"), HasSubstr("password has a secret"),
                          HasSubstr("server.key has a secret"), HasSubstr("store has what is stored")));
  for (const char* name : {"kv.json", "password", "server.key"})
    fs::permissions(dir_ / name, fs::perms(0640));
  fs::permissions(dir_ / "store", fs::perms(0700));
  EXPECT_THAT(Exposed(file), IsEmpty());
}

TEST_F(Secrets, AreSafeInAFolderThatOthersCannotEnter) {
  const fs::path file = File(
      "kv.json",
      R"({"data": "store", "backends": {"west": {"type": "remote", "address": "unix:/w", "token": "t"}}})");
  EXPECT_THAT(Exposed(file), ElementsAre(HasSubstr("kv.json has a secret")));
  fs::permissions(dir_.path(), fs::perms(0750));
  EXPECT_THAT(Exposed(file), IsEmpty());
}

TEST_F(Secrets, AConfigurationWithoutAnyIsForEverybody) {
  EXPECT_THAT(Exposed(File("kv.json", R"({"data": "store"})")), IsEmpty());
}

}  // namespace
}  // namespace kvstore
