#include "server/http/target.h"

#include <gtest/gtest.h>

#include "server/http/routes.h"
#include "tests/support/status_matchers.h"

namespace kvstore::server {
namespace {

using Strings = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(Target, IsDecoded) {
  ASSERT_OK_AND_ASSIGN(const Target target, ParseTarget("/v1/a%2Fb/c+d//%00%ff?x=1&y=a+b%26&&z&=v&x=2"));
  EXPECT_EQ(target.path, (Strings{"v1", "a/b", "c+d", "", std::string("\0\xff", 2)}));
  EXPECT_EQ(target.query, (Pairs{{"x", "1"}, {"y", "a b&"}, {"z", ""}, {"", "v"}, {"x", "2"}}));
  EXPECT_EQ(ParseTarget("/")->path, Strings{""});
  EXPECT_EQ(ParseTarget("http://host:1/a?b")->path, Strings{"a"});
  EXPECT_EQ(ParseTarget("https://host")->path, Strings{""});
}

TEST(Target, ThatIsNoneIsRefused) {
  for (const char* none :
       {"", "*", "v1", "ftp://host/", "/%", "/%1", "/%zz", "/a?x=%1", "/a?%=1", "/a#b", "http://host?x"}) {
    EXPECT_EQ(ParseTarget(none).status().code(), absl::StatusCode::kInvalidArgument) << none;
  }
}

TEST(Routes, AreThoseOfTheForms) {
  const Route get = FindRoute("GET", "/v1/datasets/d/rows/a%2Fb?limit=2&columns=x&columns=y");
  ASSERT_EQ(get.kind, Route::Kind::kOperation);
  EXPECT_EQ(get.operation->name, "get_row");
  EXPECT_EQ(*get.request, Json::parse(R"({"dataset":"d","row":"a/b","limit":"2","columns":["x","y"]})"));
  const Route post = FindRoute("POST", "/v1/get_row");
  ASSERT_EQ(post.kind, Route::Kind::kOperation);
  EXPECT_FALSE(post.request.has_value());
  EXPECT_EQ(FindRoute("POST", "/v1/exec").kind, Route::Kind::kExec);
  EXPECT_EQ(FindRoute("GET", "/v1/openapi.json").kind, Route::Kind::kOpenApi);
  EXPECT_EQ(FindRoute("GET", "/v1/exec").status, 405);
  EXPECT_EQ(FindRoute("PUT", "/v1/datasets").status, 405);
  EXPECT_EQ(FindRoute("GET", "/v2/datasets").status, 404);
}

}  // namespace
}  // namespace kvstore::server
