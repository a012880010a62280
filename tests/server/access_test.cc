#include "server/call/access.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace kvstore::server {
namespace {

using testing::FailsWith;
using testing::TempDir;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string Entry(const std::string& name, const std::string& token, const std::string& rights) {
  return R"({"name": ")" + name + R"(", "sha256": ")" + TokenDigest(token) + R"(", "rights": )" + rights +
         "}";
}

std::string List(const std::string& entries) { return R"({"tokens": [)" + entries + "]}"; }

TEST(AccessList, TheDigestIsSha256) {
  EXPECT_EQ(TokenDigest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(AccessList, ATokenHasItsRights) {
  ASSERT_OK_AND_ASSIGN(
      const AccessList list,
      AccessList::Parse(List(Entry("web", "s3cret", R"({"*": "read", "events": "write", "pay": "none"})") +
                             "," + Entry("ops", "other", R"({"*": "admin"})"))));
  const Principal* web = list.FindToken("s3cret");
  ASSERT_NE(web, nullptr);
  EXPECT_EQ(web->name, "web");
  EXPECT_EQ(web->On("events"), Right::kWrite);
  EXPECT_EQ(web->On("pins"), Right::kRead);
  EXPECT_EQ(web->On("pay"), Right::kNone);
  EXPECT_EQ(list.FindToken("other")->name, "ops");
  EXPECT_EQ(list.FindToken("s3cre"), nullptr);
  EXPECT_EQ(list.FindToken(""), nullptr);
  EXPECT_OK(CheckRight(web, "events", Right::kWrite));
  EXPECT_OK(CheckRight(web, "events", Right::kRead));
  EXPECT_THAT(CheckRight(web, "events", Right::kAdmin),
              FailsWith(absl::StatusCode::kPermissionDenied, "'web' lacks the right to administer 'events'"));
  EXPECT_THAT(CheckRight(web, "pay", Right::kRead),
              FailsWith(absl::StatusCode::kPermissionDenied, "read 'pay'"));
  EXPECT_OK(CheckRight(nullptr, "pay", Right::kAdmin));
}

TEST(AccessList, LimitsAreThoseOfAllEntriesOfAName) {
  const std::string digest = TokenDigest("t");
  const auto entry = [&](const std::string& name, const std::string& more) {
    return R"({"name": ")" + name + R"(", "sha256": ")" + digest + R"(", "rights": {"*": "read"})" + more +
           "}";
  };
  const std::string limits = R"(, "limits": {"calls_per_s": 10, "bytes_per_s": 20, "max_calls": 30})";
  ASSERT_OK_AND_ASSIGN(
      const AccessList list,
      AccessList::Parse(R"({"tokens": [)" + entry("web", "") + "," + entry("web", limits) + "," +
                        entry("ops", "") + R"(], "dataset_limits": {"events": {"calls_per_s": 5}}})"));
  EXPECT_EQ(list.LimitsOf("web"), (QuotaLimits{.calls_per_s = 10, .bytes_per_s = 20, .max_calls = 30}));
  EXPECT_EQ(list.LimitsOf("ops"), QuotaLimits{});
  EXPECT_EQ(list.LimitsOf("nobody"), QuotaLimits{});
  EXPECT_EQ(list.dataset_limits().at("events"), (QuotaLimits{.calls_per_s = 5}));

  const auto mistake = [&](const std::string& text) {
    return std::string(AccessList::Parse(text).status().message());
  };
  EXPECT_EQ(
      mistake(List(entry("web", limits) + "," + entry("web", R"(, "limits": {"max_calls": 1})"))),
      "tokens[1].limits: must be those of the other entries of 'web', which are one caller's, or be left "
      "away");
  EXPECT_EQ(mistake(List(entry("web", R"(, "limits": {"calls_per_s": 0})"))),
            "tokens[0].limits.calls_per_s: must be a whole number from 1 to 1000000000000");
  EXPECT_EQ(mistake(List(entry("web", R"(, "limits": {"calls": 1})"))),
            "tokens[0].limits.calls: unknown field; did you mean calls_per_s, or max_calls?");
  EXPECT_EQ(mistake(List(entry("web", R"(, "limits": 7)"))),
            "tokens[0].limits: must be a JSON object, not number");
  EXPECT_EQ(mistake(R"({"tokens": [], "dataset_limits": []})"),
            R"(dataset_limits: must be an object: {"DATASET": {"calls_per_s": 1000}})");
  for (const char* name : {"*", "reports/visits", ""}) {
    EXPECT_EQ(
        mistake(std::string(R"({"tokens": [], "dataset_limits": {")") + name + R"(": {"max_calls": 1}}})"),
        std::string("dataset_limits.") + name + ": must be the name of one dataset");
  }
  EXPECT_EQ(
      mistake(R"({"tokens": [], "dataset_limits": {"events": {}}})"),
      "dataset_limits.events: has no limit: give calls_per_s, bytes_per_s or max_calls, or leave it away");
  EXPECT_EQ(mistake(R"({"tokens": [], "dataset_limits": {"events": {"max_calls": -1}}})"),
            "dataset_limits.events.max_calls: must be a whole number from 1 to 1000000000000");
}

TEST(AccessList, ARightOnAReportIsMoreThanTheOneOnItsDataset) {
  ASSERT_OK_AND_ASSIGN(
      const AccessList list,
      AccessList::Parse(List(
          Entry("chart", "c", R"({"reports/flights": "read", "reports/a/b": "write", "plain": "read"})") +
          "," + Entry("loader", "l", R"({"reports": "read", "reports/flights": "write"})"))));
  const Principal* chart = list.FindToken("c");
  ASSERT_NE(chart, nullptr);
  EXPECT_EQ(chart->On("reports", "flights"), Right::kRead);
  EXPECT_EQ(chart->On("reports", "a/b"), Right::kWrite) << "a report's name may have a slash";
  EXPECT_EQ(chart->On("reports", "flight"), Right::kNone);
  EXPECT_EQ(chart->On("reports"), Right::kNone) << "the rows of a dataset are those of all of its reports";
  EXPECT_EQ(chart->On("other", "flights"), Right::kNone);
  EXPECT_EQ(chart->On("plain", "flights"), Right::kRead);
  EXPECT_TRUE(chart->MayKnowOf("reports"));
  EXPECT_TRUE(chart->MayKnowOf("plain"));
  EXPECT_FALSE(chart->MayKnowOf("other"));
  EXPECT_OK(CheckRight(chart, "reports", Right::kRead, "flights"));
  EXPECT_THAT(
      CheckRight(chart, "reports", Right::kWrite, "flights"),
      FailsWith(absl::StatusCode::kPermissionDenied, "'chart' lacks the right to write 'reports/flights'"));
  const Principal* loader = list.FindToken("l");
  EXPECT_EQ(loader->On("reports", "flights"), Right::kWrite);
  EXPECT_EQ(loader->On("reports", "others"), Right::kRead);
}

TEST(AccessList, ARightOnAReportThatHidesNothingIsAMistake) {
  const auto mistake = [](const std::string& rights) {
    return AccessList::Parse(List(Entry("a", "t", rights))).status();
  };
  EXPECT_THAT(
      mistake(R"({"*": "read", "reports/secret": "none"})"),
      FailsWith(kInvalid, "tokens[0].rights.reports/secret: must be more than the right on 'reports'"));
  EXPECT_THAT(mistake(R"({"reports": "write", "reports/flights": "write"})"),
              FailsWith(kInvalid, "must be more"));
  EXPECT_OK(mistake(R"({"*": "read", "reports": "none", "reports/flights": "read"})"));
  for (const char* name : {"/flights", "reports/", "*/flights"}) {
    EXPECT_THAT(mistake(std::string("{\"") + name + "\": \"read\"}"),
                FailsWith(kInvalid, "must name a dataset and a report"));
  }
}

TEST(AccessList, MistakesAreListedWithoutSecrets) {
  const auto mistake = [](const std::string& text) { return AccessList::Parse(text).status(); };
  EXPECT_THAT(mistake("{"), FailsWith(kInvalid, "not JSON"));
  EXPECT_THAT(mistake(R"({"token": []})"), FailsWith(kInvalid, "tokens: missing"));
  EXPECT_THAT(mistake(List(R"({"name": "a", "rights": {}})")),
              FailsWith(kInvalid, "give either this or common_name"));
  EXPECT_THAT(mistake(List(R"({"name": "a", "sha256": "tooshort", "rights": {}})")),
              FailsWith(kInvalid, "tokens[0].sha256: must be 64 hexadecimal digits"));
  EXPECT_THAT(mistake(List(R"({"name": "a", "sha256": ")" + TokenDigest("") + R"(", "rights": {}})")),
              FailsWith(kInvalid, "tokens[0].sha256: is the digest of an empty token"));
  EXPECT_THAT(mistake(List(Entry("a", "t", R"({"*": "reed"})"))),
              FailsWith(kInvalid, "tokens[0].rights.*: must be"));
  EXPECT_EQ(std::string(mistake(List(R"({"name": "a", "sha256": "tooshort", "rights": {}})")).message())
                .find("tooshort"),
            std::string::npos);
}

TEST(AccessList, ACallerHasANameThatCanBePrinted) {
  const auto status = [](const std::string& name) {
    return AccessList::Parse(List(Entry(name, "t", R"({"*": "read"})"))).status();
  };
  for (const std::string& name :
       {std::string("a"), std::string(200, 'a'), std::string("web of Jörg"), std::string("\xC2\xA0")}) {
    EXPECT_OK(status(name)) << name;
  }
  for (const std::string& name : {std::string(), std::string(201, 'a'), std::string("a\\nb"),
                                  std::string("\x7F"), std::string("\xC2\x9B")}) {
    EXPECT_THAT(status(name), FailsWith(kInvalid, "tokens[0].name: must be 1 to 200 printable characters"))
        << name;
  }
  EXPECT_THAT(AccessList::Parse(List(Entry("a", "t", R"({"": "read"})"))).status(),
              FailsWith(kInvalid, "tokens[0].rights: has an empty name"));
}

TEST(AccessList, ACertificateIsKnownByItsName) {
  ASSERT_OK_AND_ASSIGN(
      const AccessList list,
      AccessList::Parse(List(R"({"name": "ops", "common_name": "ops.example", "rights": {"*": "admin"}})")));
  EXPECT_EQ(list.FindCommonName("ops.example")->name, "ops");
  EXPECT_EQ(list.FindCommonName("ops.example.org"), nullptr);
  EXPECT_EQ(list.FindCommonName(""), nullptr);
  // An entry without a digest is nobody's token.
  EXPECT_EQ(list.FindToken(std::string(32, '\0')), nullptr);
}

TEST(Access, IsReadAgainWhenTheFileChanges) {
  const TempDir dir;
  std::ofstream(dir / "tokens.json") << List(Entry("a", "one", R"({"*": "read"})"));
  ASSERT_OK_AND_ASSIGN(const auto access, Access::Open(dir / "tokens.json"));
  EXPECT_OK(access->Identify("Bearer one", ""));
  EXPECT_OK(access->Identify("bearer one", "")) << "the scheme is in any case (RFC 9110, 11.1)";
  EXPECT_THAT(access->Identify("Bearer two", ""), FailsWith(absl::StatusCode::kUnauthenticated, "not known"));
  EXPECT_THAT(access->Identify("", ""), FailsWith(absl::StatusCode::kUnauthenticated, "no token"));
  EXPECT_THAT(access->Identify("Basic one", ""), FailsWith(absl::StatusCode::kUnauthenticated, ""));
  std::ofstream(dir / "tokens.json") << List(Entry("b", "two", R"({"*": "read"})"));
  EXPECT_TRUE(testing::Eventually([&] {
    access->Refresh();
    return access->Identify("Bearer two", "").ok();
  }));
  EXPECT_FALSE(access->Identify("Bearer one", "").ok());
  // A list with mistakes is refused, and the last good one stays.
  std::ofstream(dir / "tokens.json") << "{";
  std::filesystem::last_write_time(dir / "tokens.json",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  access->Refresh();
  EXPECT_OK(access->Identify("Bearer two", ""));
}

TEST(Access, AFileThatIsGoneOrCannotBeReadIsToldOnce) {
  const TempDir dir;
  const auto file = dir / "tokens.json";
  std::ofstream(file) << List(Entry("a", "one", R"({"*": "read"})"));
  ASSERT_OK_AND_ASSIGN(const auto access, Access::Open(file));
  std::ostringstream out;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out)));
  // Returns what is logged when the file is looked at several times.
  const auto logged = [&] {
    out.str("");
    for (int i = 0; i < 3; ++i) access->Refresh();
    return out.str();
  };
  std::filesystem::rename(file, dir / "away");
  const std::string gone = logged();
  const std::string still_gone = logged();
  // A folder cannot be read, not even by root.
  std::filesystem::create_directory(file);
  const std::string unreadable = logged();
  EXPECT_OK(access->Identify("Bearer one", ""));
  std::filesystem::remove(file);
  std::ofstream(file) << List(Entry("b", "two", R"({"*": "read"})"));
  const std::string read = logged();
  std::filesystem::remove(file);
  const std::string gone_again = logged();
  spdlog::set_default_logger(before);
  EXPECT_EQ(std::count(gone.begin(), gone.end(), '\n'), 1) << gone;
  EXPECT_NE(gone.find("tokens.json is missing"), std::string::npos) << gone;
  EXPECT_EQ(still_gone, "");
  EXPECT_EQ(std::count(unreadable.begin(), unreadable.end(), '\n'), 1) << unreadable;
  EXPECT_NE(unreadable.find("cannot read"), std::string::npos) << unreadable;
  EXPECT_NE(read.find("read again"), std::string::npos) << read;
  EXPECT_OK(access->Identify("Bearer two", ""));
  EXPECT_NE(gone_again.find("tokens.json is missing"), std::string::npos) << gone_again;
}

TEST(Access, WithoutAFileAllMayDoAll) {
  ASSERT_OK_AND_ASSIGN(const auto access, Access::Open(""));
  EXPECT_EQ(*access->Identify("", ""), nullptr);
  EXPECT_THAT(Access::Open("/nowhere"), FailsWith(absl::StatusCode::kUnavailable, "/nowhere"));
}

}  // namespace
}  // namespace kvstore::server
