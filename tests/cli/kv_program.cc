#include "tests/cli/kv_program.h"

#include <fstream>

namespace kvstore::testing {

Output KvProgram::Kv(std::vector<std::string> arguments, const std::string& input) const {
  arguments.insert(arguments.begin(), {KV_PROGRAM, "--data", (dir_ / "store").string()});
  return RunProgram(arguments, input);
}

std::string KvProgram::Ok(const std::vector<std::string>& arguments, const std::string& input) const {
  const Output output = Kv(arguments, input);
  EXPECT_EQ(output.code, 0) << arguments[0] << ": " << output.err;
  EXPECT_EQ(output.err, "");
  return output.out;
}

void KvProgram::Fails(const std::vector<std::string>& arguments, const std::string& text) const {
  const Output output = Kv(arguments);
  EXPECT_EQ(output.code, 1) << output.out;
  EXPECT_EQ(output.out, "");
  EXPECT_NE(output.err.find(text), std::string::npos) << output.err;
}

std::string KvProgram::File(const std::string& name, const std::string& text) const {
  std::ofstream(dir_ / name) << text;
  return (dir_ / name).string();
}

}  // namespace kvstore::testing
