#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/certificates.h"

/// How the store logs in to servers: by a password, with TLS and without. MySQL's passwords are
/// caching_sha2_password, which a server asks for in full once, and then knows by a digest.
namespace kvstore::testing {
namespace {

const bool kShared = ShareFleet();

const DatasetSpec kPins{
    .name = "pins", .shape = Shape::kObjects, .backend = "mysql", .type = 1, .incarnation = 1};

/// Makes the user of the store on all servers, with a password that no server has seen yet.
void MakeUser(TestFleet& fleet) {
  for (size_t i = 0; i < 2; ++i) {
    fleet.server(i).Run(
        "DROP USER IF EXISTS kvstore@'127.0.0.1'; CREATE USER kvstore@'127.0.0.1' IDENTIFIED BY 'a secret'; "
        "GRANT ALL ON `db%`.* TO kvstore@'127.0.0.1'; GRANT ALL ON `mod%`.* TO kvstore@'127.0.0.1'");
  }
}

mysql::MySqlOptions OptionsOfUser() {
  auto options = TestFleet::Options();
  options.user = "kvstore";
  options.password = "a secret";
  return options;
}

/// Opens the fleet twice: at the second time the servers know the password.
void ExpectToServe(TestFleet& fleet, const mysql::MySqlOptions& options) {
  for (int time = 1; time <= 2; ++time) {
    const auto backend = *fleet.Open(options);
    ASSERT_OK(backend->Init(nullptr, nullptr));
    ASSERT_OK(backend->CreateDataset(kPins));
    EXPECT_OK((*backend->OpenObjects(kPins))->Create("{}", {.shard = 0})) << time;
  }
}

TEST(Logins, APasswordIsTakenWithoutTls) {
  MakeUser(SharedFleet());
  ExpectToServe(SharedFleet(), OptionsOfUser());
}

TEST(Logins, APasswordIsTakenByTlsFromAServerOfTheRightAuthorityOnly) {
  const TempDir dir;
  Authority authority(dir.path(), "ca");
  const Authority other(dir.path(), "other");
  const Authority::Files server = authority.Issue("localhost");
  TestFleet fleet({"--ssl-ca=" + authority.file(), "--ssl-cert=" + server.cert, "--ssl-key=" + server.key});
  MakeUser(fleet);
  auto options = OptionsOfUser();
  options.tls = {.required = true, .ca = authority.file()};
  ExpectToServe(fleet, options);
  options.tls.ca = other.file();
  EXPECT_FALSE((*fleet.Open(options))->Init(nullptr, nullptr).ok());
}

TEST(Logins, AWrongPasswordIsRefused) {
  MakeUser(SharedFleet());
  auto options = OptionsOfUser();
  options.password = "another";
  EXPECT_THAT((*SharedFleet().Open(options))->Init(nullptr, nullptr),
              FailsWith(absl::StatusCode::kFailedPrecondition, "denied"));
}

}  // namespace
}  // namespace kvstore::testing
