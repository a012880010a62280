#include "base/markup.h"

#include <gtest/gtest.h>

namespace kvstore {
namespace {

TEST(Markup, WhatMeansSomethingInXmlIsEscaped) {
  EXPECT_EQ(EscapeMarkup(R"(a<b>&"c"&amp;)"), "a&lt;b&gt;&amp;&quot;c&quot;&amp;amp;");
  EXPECT_EQ(EscapeMarkup("plain text, 'quoted' \xc3\xa9"), "plain text, 'quoted' \xc3\xa9");
  EXPECT_EQ(EscapeMarkup(""), "");
}

}  // namespace
}  // namespace kvstore
