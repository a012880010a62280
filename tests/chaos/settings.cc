#include "tests/chaos/settings.h"

#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "tests/support/random.h"

namespace kvstore::testing::chaos {
namespace {

/// The names of what operators do, and below them those of faults.
constexpr std::array kNames = {"alter", "compact", "create", "drop", "import", "init", "migrate", "move",
                               "open", "promote", "purge", "weight",
                               //
                               "kill_command", "pause_command", "kill_server", "stop_server", "pause_server",
                               "fail_point", "kill_master", "kill_slave", "pause_master", "lose_second",
                               "zookeeper"};

std::set<std::string, std::less<>> Names(const char* variable) {
  std::set<std::string, std::less<>> names;
  const char* const text = std::getenv(variable);
  std::stringstream list(text != nullptr ? text : "");
  for (std::string name; std::getline(list, name, ',');) {
    std::string known;
    bool is_known = false;
    for (const char* one : kNames) {
      known += std::string(" ") + one;
      is_known = is_known || name == one;
    }
    if (!is_known) {
      throw std::runtime_error(std::string(variable) + ": '" + name + "' is none of" + known);
    }
    names.insert(name);
  }
  return names;
}

}  // namespace

Settings Settings::FromEnvironment() {
  Settings settings;
  settings.seed = Seed("chaos");
  settings.length = std::chrono::seconds(Rounds("KV_TEST_SECONDS", 45));
  // A step that takes seconds on an idle machine may take a minute on a busy one.
  settings.bound = std::chrono::seconds(Rounds("KV_CHAOS_BOUND", 240));
  settings.only = Names("KV_CHAOS_ONLY");
  settings.without = Names("KV_CHAOS_WITHOUT");
  if (const char* keep = std::getenv("KV_CHAOS_KEEP"); keep != nullptr) settings.keep = keep;
  return settings;
}

}  // namespace kvstore::testing::chaos
