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

TEST_F(Secrets, AddressesOfWebhooksMayHoldThem) {
  EXPECT_THAT(Exposed(File("kv.json",
                           R"({"data": "store", "operate": {"webhook": "https://hooks.example/secret"}})")),
              ElementsAre(HasSubstr("kv.json has a secret")));
  File("hook", "https://hooks.example/secret");
  EXPECT_THAT(Exposed(File("kv.json", R"({"data": "store", "operate": {"webhook_file": "hook"}})")),
              ElementsAre(HasSubstr("hook has a secret")));
}

TEST_F(Secrets, AreSafeInAFolderThatOthersCannotEnter) {
  const fs::path file = File(
      "kv.json",
      R"({"data": "store", "backends": {"west": {"type": "remote", "address": "unix:/w", "token": "t"}}})");
  EXPECT_THAT(Exposed(file), ElementsAre(HasSubstr("kv.json has a secret")));
  fs::permissions(dir_.path(), fs::perms(0750));
  EXPECT_THAT(Exposed(file), IsEmpty());
}

TEST_F(Secrets, AreToldWhereverThePathToThemLeads) {
  // Others cannot enter the configuration's folder, but they can enter the folder of the secrets.
  const fs::path password = File("password", "p");
  const fs::path closed = dir_ / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms(0750));
  const auto with = [&](const std::string& named) {
    std::ofstream(closed / "kv.json") << R"({"data": "store", "backends": {"mysql": {"type": "mysql",
        "user": "u", "zookeeper": "zk", "password_file": ")"
                                      << named << R"("}}})";
    return Exposed(closed / "kv.json");
  };
  EXPECT_THAT(with("../password"), ElementsAre(HasSubstr("password has a secret")));
  fs::create_symlink(password, closed / "link");
  EXPECT_THAT(with("link"), ElementsAre(HasSubstr("password has a secret")));
  std::ofstream(closed / "own") << "p";
  EXPECT_THAT(with("own"), IsEmpty());
}

TEST_F(Secrets, WhatDecidesWhoMayDoWhatIsNotForOthersToChange) {
  const fs::path tokens = File("tokens.json", R"({"tokens": []})");
  const fs::path file = File("kv.json", R"({"data": "store", "server": {"tokens": "tokens.json"}})");
  EXPECT_THAT(Exposed(file), IsEmpty());
  fs::permissions(tokens, fs::perms(0646));
  EXPECT_THAT(Exposed(file), ElementsAre(HasSubstr("tokens.json says who may do what")));
  fs::permissions(tokens, fs::perms(0644));
  // In such a folder anybody can put another file in place.
  fs::permissions(dir_.path(), fs::perms(0777));
  EXPECT_THAT(Exposed(file), ElementsAre(HasSubstr("kv.json says who"), HasSubstr("tokens.json says who")));
  fs::permissions(dir_.path(), fs::perms(0777) | fs::perms::sticky_bit);
  EXPECT_THAT(Exposed(file), IsEmpty()) << "only its owner can replace a file in a sticky folder";
}

TEST_F(Secrets, AConfigurationWithoutAnyIsForEverybody) {
  EXPECT_THAT(Exposed(File("kv.json", R"({"data": "store"})")), IsEmpty());
}

}  // namespace
}  // namespace kvstore
