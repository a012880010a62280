#include "cli/log_format.h"

#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>

namespace kvstore::cli {
namespace {

TEST(LogFormat, WhatOthersSayIsOneHarmlessLine) {
  std::ostringstream out;
  spdlog::logger log("kv", std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
  log.set_formatter(PrintableLogFormat());
  log.warn("{}", "it said: \x1b[31m\u009b31m\u202e\n[2026-01-01] caf\u00e9 a\\b \xff");
  const std::string line = out.str();
  EXPECT_EQ(line.find("[kv] [warning] it said: "), line.find("[kv]")) << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  for (const char* obeyed : {"\x1b", "\u009b", "\u202e"})
    EXPECT_EQ(line.find(obeyed), std::string::npos) << line;
  EXPECT_NE(line.find("a\\b"), std::string::npos) << "harmless text stays: " << line;
}

}  // namespace
}  // namespace kvstore::cli
