#include "json/value_count.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/random.h"

namespace kvstore {
namespace {

size_t Count(const nlohmann::json& json) {
  size_t count = 1;
  if (json.is_structured()) {
    for (const auto& part : json) count += Count(part);
  }
  return count;
}

TEST(ValueCount, IsNoLessThanWhatIsBuilt) {
  for (const char* text :
       {"1", "[]", "[[],[]]", R"({"a":{"b":[1,2]},"c":"x,[{"})", R"(["\",\\",","])", "{}"}) {
    EXPECT_GE(CountJsonValues(text), Count(nlohmann::json::parse(text))) << text;
  }
  EXPECT_EQ(CountJsonValues(R"("a, [b], {c}, \"d, ")"), 1u) << "nothing in a string counts";
}

TEST(ValueCount, HoldsForTextsOfAllKinds) {
  testing::Random random(testing::Seed("values"));
  constexpr std::string_view kPieces = "[]{},:\"\\1a ";
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (size_t n = random.Below(14); n > 0; --n) text += kPieces[random.Below(kPieces.size())];
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) continue;
    ASSERT_GE(CountJsonValues(text), Count(json)) << text;
  }
}

}  // namespace
}  // namespace kvstore
