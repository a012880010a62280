#include "backend_api/shard_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/caller.h"
#include "client/client.h"
#include "server/call/access.h"
#include "tests/server/server_fixture.h"

/// The shard maps over the wire: who may read them, and what the log has of that.
namespace kvstore::testing {
namespace {

using ::testing::HasSubstr;

/// A map of ID shards, no map of mod shards, and a history.
class TwoMaps : public ShardMaps {
 public:
  absl::StatusOr<std::string> GetShardMap(ShardSpace space) override {
    if (space == ShardSpace::kMod) return absl::NotFoundError("no map");
    return "[{\"range\": \xff";  // what is stored is told, also if it is damaged
  }
  absl::StatusOr<std::vector<Kept>> ListShardMaps(ShardSpace space) override {
    std::vector<Kept> maps = {{"0002", 7, "ann", "[]"}, {"0001", 5, "bob", std::nullopt}};
    if (space == ShardSpace::kMod) maps.clear();
    return maps;
  }
};

class ShardMapsTest : public ::testing::Test {
 protected:
  ShardMapsTest() {
    const auto entry = [](const std::string& name, const std::string& rights) {
      return R"({"name": ")" + name + R"(", "sha256": ")" + server::TokenDigest("token-" + name) +
             R"(", "rights": )" + rights + "}";
    };
    std::ofstream(dir_ / "tokens.json") << R"({"tokens": [)" << entry("ops", R"({"*": "admin"})") << ","
                                        << entry("owner", R"({"events": "admin", "*": "write"})") << "]}";
    options_.tokens = dir_ / "tokens.json";
  }

  std::unique_ptr<client::Client> ClientOf(const Served& served, const std::string& name) {
    auto caller = client::Caller::Open(served.address(), {.token = "token-" + name, .plain_token = true});
    EXPECT_OK(caller);
    return std::make_unique<client::Client>(*std::move(caller));
  }

  const TempDir dir_;
  ServerOptions options_ = TestServerOptions();
  TwoMaps maps_;
};

TEST_F(ShardMapsTest, AnOperatorReadsThemAsTheyAreStored) {
  const Served served(options_, {.shard_maps = &maps_});
  const auto ops = ClientOf(served, "ops");
  ASSERT_OK_AND_ASSIGN(const std::string map, ops->GetShardMap(ShardSpace::kId));
  EXPECT_EQ(map, *maps_.GetShardMap(ShardSpace::kId));
  EXPECT_THAT(ops->GetShardMap(ShardSpace::kMod), FailsWith(absl::StatusCode::kNotFound, "no map"));
  ASSERT_OK_AND_ASSIGN(const auto kept, ops->ListShardMaps(ShardSpace::kId));
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].name, "0002");
  EXPECT_EQ(kept[0].at_ms, 7u);
  EXPECT_EQ(kept[0].who, "ann");
  EXPECT_EQ(kept[0].map, "[]");
  EXPECT_EQ(kept[1].map, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const auto none, ops->ListShardMaps(ShardSpace::kMod));
  EXPECT_TRUE(none.empty());
}

TEST_F(ShardMapsTest, NobodyElseReadsThem) {
  const Served served(options_, {.shard_maps = &maps_});
  for (const char* const name : {"owner", "stranger"}) {
    const auto code = name == std::string("owner") ? absl::StatusCode::kPermissionDenied
                                                   : absl::StatusCode::kUnauthenticated;
    EXPECT_EQ(ClientOf(served, name)->GetShardMap(ShardSpace::kId).status().code(), code) << name;
    EXPECT_EQ(ClientOf(served, name)->ListShardMaps(ShardSpace::kId).status().code(), code) << name;
  }
}

TEST_F(ShardMapsTest, AServerWithoutMapsSaysSo) {
  const Served served(options_);
  EXPECT_THAT(ClientOf(served, "ops")->GetShardMap(ShardSpace::kId),
              FailsWith(absl::StatusCode::kUnimplemented, "this server has no shard maps"));
}

TEST_F(ShardMapsTest, EachCallIsLoggedWithWhoAndFromWhereAndItsResult) {
  const auto before = spdlog::default_logger();
  std::ostringstream log;
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  {
    const Served served(options_, {.shard_maps = &maps_});
    ASSERT_OK(ClientOf(served, "ops")->GetShardMap(ShardSpace::kId));
    EXPECT_FALSE(ClientOf(served, "owner")->ListShardMaps(ShardSpace::kId).ok());
  }
  spdlog::set_default_logger(before);
  const std::string text = log.str();
  EXPECT_THAT(text, HasSubstr(R"({"call":"GetShardMap","code":"OK",)"));
  EXPECT_THAT(text, HasSubstr(R"("caller":"ops","peer":"ipv4:127.0.0.1:)"));
  EXPECT_THAT(text, HasSubstr(R"({"call":"ListShardMaps","code":"PERMISSION_DENIED",)"));
  EXPECT_THAT(text, HasSubstr(R"("caller":"owner","peer":"ipv4:127.0.0.1:)"));
}

}  // namespace
}  // namespace kvstore::testing
