#include "cli/object_text.h"

#include <gtest/gtest.h>

namespace kvstore::cli {
namespace {

TEST(ObjectText, TheDocumentIsFoundAsItStandsInTheLine) {
  EXPECT_EQ(DocumentIn(R"({"data":{"a":1}})"), R"({"a":1})");
  EXPECT_EQ(DocumentIn(R"( { "id" : "7" , "data" :	{ "a" : 18446744073709551616 } , "near" : 3 } )"),
            R"({ "a" : 18446744073709551616 })");
  EXPECT_EQ(DocumentIn(R"({"d\u0061ta":{}})"), "{}");
  EXPECT_EQ(DocumentIn(R"({"data":[1,{"data":2}]})"), R"([1,{"data":2}])");
  EXPECT_EQ(DocumentIn(R"({"data":12})"), "12");
}

TEST(ObjectText, WhatOnlyLooksLikeTheMemberIsPassedOver) {
  EXPECT_EQ(DocumentIn(R"({"key":"data","data":{"b":2}})"), R"({"b":2})");
  EXPECT_EQ(DocumentIn(R"({"key":"\"data\":{\\","data":{"s":"}\",\\"}})"), R"({"s":"}\",\\"})");
  EXPECT_EQ(DocumentIn(R"({"more":{"data":1},"list":["data",{"data":2}],"data":3})"), "3");
  EXPECT_EQ(DocumentIn(R"({"data":1,"data":2})"), "2");
  EXPECT_EQ(DocumentIn(R"({"key":{"data":1}})"), "");
  EXPECT_EQ(DocumentIn("{}"), "");
}

TEST(ObjectText, DocumentsAreComparedByWhatTheySay) {
  EXPECT_TRUE(SameDocument(R"({"a":1,"b":2})", R"({ "b": 2, "a": 1 })"));
  EXPECT_FALSE(SameDocument(R"({"a":1})", R"({"a":2})"));
  EXPECT_TRUE(SameDocument("{\"a\":18446744073709551616,\n\"b\":1}", R"({"a":18446744073709551616, "b":1})"));
  EXPECT_FALSE(SameDocument(R"({"a":18446744073709551616})", R"({"a":18446744073709551617})"))
      << "as real numbers they are equal";
}

}  // namespace
}  // namespace kvstore::cli
