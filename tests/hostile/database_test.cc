#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "backends/mysql/driver/connection.h"
#include "tests/backends/mysql/test_fleet.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"

/// A malicious database server, and the process that uses it.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const bool kShared = ShareFleet();

/// Makes a packet of MySQL's protocol: its length, its number in the exchange, its content.
std::string Packet(const std::string& text) {
  std::string packet = {static_cast<char>(text.size()), 0, 0, 1};
  return packet + text;
}

TEST(HostileDatabase, ReadsNoFileOfItsClient) {
  TcpProxy proxy(Host::Parse(SharedFleet().server(0).address())->port);
  const TempDir dir;
  const std::string file = (dir / "secret").string();
  std::ofstream(file) << "a password";
  // A server may answer any statement by asking for a file of the client's (LOAD DATA LOCAL INFILE).
  proxy.ReplaceAnswerTo("SET SESSION time_zone", Packet("\xfb" + file));
  const auto connection = mysql::Connection::Open(*Host::Parse(proxy.address()), TestFleet::Options());
  ASSERT_TRUE(proxy.HasCut());
  EXPECT_FALSE(connection.ok());
  EXPECT_THAT(proxy.SaidSince(), Not(HasSubstr("a password")));
  EXPECT_GE(proxy.SaidSince().size(), 4u) << "it has answered, with nothing";
}

}  // namespace
}  // namespace kvstore::testing
