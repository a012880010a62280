#include "shardops/option_file.h"

#include <fmt/format.h>

namespace kvstore::shardops {

std::string OptionValue(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + escaped + '"';
}

std::string OptionFile(std::string_view group, const Host& host, const mysql::MySqlOptions& login,
                       std::string_view more) {
  std::string text =
      fmt::format("[{}]\nhost={}\nport={}\nuser={}\npassword={}\n{}", group, OptionValue(host.name),
                  host.port, OptionValue(login.user), OptionValue(login.password), more);
  if (login.tls.required) {
    text += "ssl\n";
    if (!login.tls.ca.empty()) {
      text += fmt::format("ssl-ca={}\nssl-verify-server-cert\n", OptionValue(login.tls.ca));
    }
    if (!login.tls.cert.empty()) text += fmt::format("ssl-cert={}\n", OptionValue(login.tls.cert));
    if (!login.tls.key.empty()) text += fmt::format("ssl-key={}\n", OptionValue(login.tls.key));
  }
  return text;
}

}  // namespace kvstore::shardops
