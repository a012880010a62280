#include "cli/prometheus_text.h"

#include <gtest/gtest.h>

namespace kvstore::cli {
namespace {

TEST(PrometheusText, SamplesAreRead) {
  const auto samples = ParsePrometheus(
      "# HELP a what it is\n# TYPE a gauge\na 1.5\nb{x=\"1\",y=\"a \\\"quoted\\\" \\\\ \\n\"} 2e3\nc{} "
      "+Inf\n\nbroken{x=\"1\n"
      "alone\nd 4");
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[0].name, "a");
  EXPECT_EQ(samples[0].value, 1.5);
  EXPECT_EQ(samples[0].Text(), "a");
  EXPECT_EQ(samples[1].Label("y"), "a \"quoted\" \\ \n");
  EXPECT_EQ(samples[1].Label("z"), "");
  EXPECT_EQ(samples[1].value, 2000);
  EXPECT_EQ(samples[2].name, "c");
  EXPECT_EQ(samples[3].value, 4);
}

}  // namespace
}  // namespace kvstore::cli
