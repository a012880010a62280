#include "base/process.h"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace kvstore {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Identifies the machine since its boot, and the PID namespace of this process; empty if one is unknown.
const std::string& MachineAndNamespace() {
  static const std::string place = [] {
    std::error_code error;
    const auto names = std::filesystem::read_symlink("/proc/self/ns/pid", error);
    const std::string boot = FirstLine("/proc/sys/kernel/random/boot_id");
    return error || boot.empty() ? std::string() : boot + "/" + names.string();
  }();
  return place;
}

/// Returns one field of /proc/PID/stat, counted from 1; the state is field 3. Empty if it cannot be read.
std::string StatField(std::string_view pid, int wanted) {
  const std::string stat = FirstLine("/proc/" + std::string(pid) + "/stat");
  // The name of the program, in brackets, may hold any characters.
  const size_t name = stat.rfind(')');
  if (name == std::string::npos) return "";
  std::istringstream rest(stat.substr(name + 1));
  std::string field;
  for (int number = 3; number <= wanted; ++number) rest >> field;
  return rest ? field : "";
}

constexpr int kState = 3;
/// The time of the start, in clock ticks since the boot.
constexpr int kStart = 22;

std::string UserName() {
  std::array<char, 4096> memory{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, memory.data(), memory.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(::geteuid());
}

}  // namespace

std::string UserAndHost() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  return UserName() + "@" + host.data();
}

std::string ProcessName() { return UserAndHost() + ", process " + std::to_string(::getpid()); }

std::string ProcessIdentity() {
  const std::string pid = std::to_string(::getpid());
  return MachineAndNamespace().empty() ? ""
                                       : MachineAndNamespace() + "/" + pid + "/" + StatField(pid, kStart);
}

bool ProcessHasEnded(std::string_view identity) {
  const std::string& place = MachineAndNamespace();
  if (place.empty() || !identity.starts_with(place) || identity.substr(place.size()).empty()) return false;
  identity.remove_prefix(place.size());
  const size_t slash = identity.find('/', 1);
  if (identity.front() != '/' || slash == std::string_view::npos) return false;
  const std::string_view pid = identity.substr(1, slash - 1);
  int number = 0;
  const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), number);
  if (error != std::errc() || end != pid.data() + pid.size()) return false;
  if (::kill(number, 0) != 0 && errno == ESRCH) return true;
  const std::string start = StatField(pid, kStart);
  // The system may hide processes of other users, reuse a number, and still list a process that was killed (a
  // zombie).
  return !start.empty() && (start != identity.substr(slash + 1) || StatField(pid, kState) == "Z");
}

}  // namespace kvstore
