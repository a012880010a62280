#include "server/brief_calls.h"

#include <gtest/gtest.h>

namespace kvstore::server {
namespace {

TEST(BriefCalls, AreOnlySoManyAtATime) {
  BriefCalls calls(2);
  grpc::CallbackServerContext one;
  grpc::CallbackServerContext two;
  grpc::CallbackServerContext three;
  EXPECT_TRUE(calls.Enter(one));
  EXPECT_TRUE(calls.Enter(two));
  EXPECT_FALSE(calls.Enter(three));
  calls.Leave(one);
  EXPECT_TRUE(calls.Enter(three));
  calls.CancelOld();
  EXPECT_FALSE(calls.Enter(one)) << "none of them is old";
}

}  // namespace
}  // namespace kvstore::server
