#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "backends/mysql/connection.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"

/// A database that means harm, to the process that uses it.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const bool kShared = ShareFleet();

/// A packet of MySQL's protocol: its length, its number in the exchange, what it says.
std::string Packet(const std::string& text) {
  std::string packet = {static_cast<char>(text.size()), 0, 0, 1};
  return packet + text;
}

TEST(HostileDatabase, ReadsNoFileOfItsClient) {
  TcpProxy proxy(Host::Parse(SharedFleet().server(0).address())->port);
  const TempDir dir;
  const std::string file = (dir / "secret").string();
  std::ofstream(file) << "a password";
  // To any statement a server may answer: send me this file of yours (LOAD DATA LOCAL INFILE).
  proxy.ReplaceAnswerTo("SET SESSION time_zone", Packet("\xfb" + file));
  const auto connection = mysql::Connection::Open(*Host::Parse(proxy.address()), TestFleet::Options());
  ASSERT_TRUE(proxy.HasCut());
  EXPECT_FALSE(connection.ok());
  EXPECT_THAT(proxy.SaidSince(), Not(HasSubstr("a password")));
  EXPECT_GE(proxy.SaidSince().size(), 4u) << "it has answered, with nothing";
}

}  // namespace
}  // namespace kvstore::testing
