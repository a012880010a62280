#include "server/call/brief_calls.h"

#include <gtest/gtest.h>

namespace kvstore::server {
namespace {

class FakeTransport : public CallTransport {
 public:
  std::string_view Authorization() const override { return ""; }
  std::string CommonName() const override { return ""; }
  std::string Peer() const override { return ""; }
  std::optional<std::string_view> ExpectedBackend() const override { return std::nullopt; }
  bool WantsMigrationErrors() const override { return false; }
  void Cancel() override { cancelled = true; }
  void SendOutcome(CallOutcome) override {}

  bool cancelled = false;
};

TEST(BriefCalls, AreOnlySoManyAtATime) {
  BriefCalls calls(2);
  FakeTransport one;
  FakeTransport two;
  FakeTransport three;
  EXPECT_TRUE(calls.Admit(one));
  EXPECT_TRUE(calls.Admit(two));
  EXPECT_FALSE(calls.Admit(three));
  calls.Release(one);
  EXPECT_TRUE(calls.Admit(three));
  calls.CancelOld();
  EXPECT_FALSE(two.cancelled || three.cancelled) << "none of them is old";
  EXPECT_FALSE(calls.Admit(one));
}

}  // namespace
}  // namespace kvstore::server
