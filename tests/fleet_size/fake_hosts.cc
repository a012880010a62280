#include "tests/fleet_size/fake_hosts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "base/clock.h"
#include "tests/support/loopback.h"

namespace kvstore::testing::fleet_size {
namespace {

// Constants of the MySQL protocol.
constexpr char kQuit = 1;
constexpr char kQuery = 3;
constexpr char kVersion[] = "10.11.6-MariaDB-log";
constexpr uint32_t kCapabilities = 0x8a20f;  // protocol 4.1, its passwords by plugin, transactions, databases

void Put(std::string& to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

/// Appends the length of a text, and then the text. All texts here are shorter than 251 bytes.
void PutText(std::string& to, std::string_view text) {
  Put(to, text.size(), 1);
  to += text;
}

void PutPacket(std::string& to, uint8_t sequence, std::string_view body) {
  Put(to, body.size(), 3);
  Put(to, sequence, 1);
  to += body;
}

std::string Greeting() {
  std::string body = "\x0a";
  body += "5.5.5-";
  body += kVersion;
  Put(body, 0, 1);
  Put(body, 7, 4);  // the number of the connection
  body += "12345678";
  Put(body, 0, 1);
  Put(body, kCapabilities & 0xFFFF, 2);
  Put(body, 45, 1);  // utf8mb4
  Put(body, 2, 2);
  Put(body, kCapabilities >> 16, 2);
  Put(body, 21, 1);
  body.append(10, '\0');
  body += "123456789012";
  Put(body, 0, 1);
  body += "mysql_native_password";
  Put(body, 0, 1);
  std::string packet;
  PutPacket(packet, 0, body);
  return packet;
}

std::string Ok() { return {"\0\0\0\x02\0\0\0", 7}; }
std::string End() { return {"\xfe\0\0\x02\0", 5}; }

std::string Error(std::string_view text) {
  std::string body = "\xff";
  Put(body, 1064, 2);
  return body + "#42000" + std::string(text);
}

std::string Column(std::string_view name) {
  std::string body;
  for (const std::string_view text :
       {std::string_view("def"), std::string_view(), std::string_view(), std::string_view(), name, name}) {
    PutText(body, text);
  }
  Put(body, 12, 1);
  Put(body, 45, 2);
  Put(body, 1024, 4);
  Put(body, 0xfd, 1);  // a text
  Put(body, 0, 5);
  return body;
}

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Splits a list at the commas that are in no brackets.
std::vector<std::string_view> Split(std::string_view list) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '(') ++depth;
    if (i < list.size() && list[i] == ')') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    std::string_view part = list.substr(begin, i - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

}  // namespace

FakeHosts::FakeHosts(size_t count) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  const uint16_t port = FreePort();
  for (size_t i = 0; i < count; ++i) {
    hosts_.push_back({.name = fmt::format("127.1.{}.{}", i / 250, i % 250 + 1), .port = port});
    sockaddr_in address = Loopback(port);
    ::inet_pton(AF_INET, hosts_.back().name.c_str(), &address.sin_addr);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener, 64) != 0) {
      throw std::runtime_error(fmt::format("{}: cannot listen", hosts_.back().ToString()));
    }
    listeners_.push_back(listener);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = uint64_t{i} << 32}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener, &event);
  }
  thread_ = std::thread([this] { Run(); });
}

FakeHosts::~FakeHosts() {
  stopping_ = true;
  thread_.join();
  for (const int listener : listeners_) ::close(listener);
  for (const auto& [fd, connection] : open_) ::close(fd);
  ::close(epoll_);
  delete unknown_.load();
}

std::string FakeHosts::unknown() const {
  const std::string* const text = unknown_;
  return text == nullptr ? "" : *text;
}

void FakeHosts::Run() {
  std::array<epoll_event, 256> events{};
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_, events.data(), events.size(), 50);
    for (int i = 0; i < count; ++i) {
      const uint64_t what = events[static_cast<size_t>(i)].data.u64;
      const int fd = static_cast<int>(what & 0xFFFFFFFF);
      if (fd == 0) {
        Accept(what >> 32);
      } else if (const auto found = open_.find(fd); found != open_.end() && !OnReadable(*found->second)) {
        ::close(fd);
        open_.erase(found);
      }
    }
  }
}

void FakeHosts::Accept(size_t host) {
  const int fd = ::accept4(listeners_[host], nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  ++connections_;
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  open_[fd] = std::make_unique<Connection>(Connection{.fd = fd, .host = host});
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(fd)}};
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  const std::string greeting = Greeting();
  ::send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL);
}

bool FakeHosts::OnReadable(Connection& connection) {
  std::array<char, 16'384> buffer{};
  const ssize_t size = ::read(connection.fd, buffer.data(), buffer.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (size <= 0) return false;
  connection.in.append(buffer.data(), static_cast<size_t>(size));
  while (connection.in.size() >= 4) {
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(connection.in[i])); };
    const size_t length = byte(0) | byte(1) << 8 | byte(2) << 16;
    if (connection.in.size() < 4 + length) break;
    const std::string packet = connection.in.substr(4, length);
    const auto sequence = static_cast<uint8_t>(connection.in[3]);
    connection.in.erase(0, 4 + length);
    if (!OnPacket(connection, packet, sequence)) return false;
  }
  return true;
}

bool FakeHosts::OnPacket(Connection& connection, std::string_view packet, uint8_t sequence) {
  std::string answer;
  if (!connection.greeted) {
    connection.greeted = true;
    PutPacket(answer, static_cast<uint8_t>(sequence + 1), Ok());
  } else if (packet.empty() || packet[0] == kQuit) {
    return false;
  } else if (packet[0] == kQuery) {
    answer = Answer(connection, std::string(packet.substr(1)));
  } else {
    PutPacket(answer, 1, Ok());
  }
  return ::send(connection.fd, answer.data(), answer.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(answer.size());
}

std::string FakeHosts::Value(size_t host, std::string_view expression) const {
  const bool master = host % 2 == 0;
  const std::string gtid = fmt::format("{0}-{0}-1000", host / 2 + 1);
  if (Has(expression, "SYSDATE") || Has(expression, "NOW(")) return std::to_string(WallClockMs());
  if (Has(expression, "AFTER_SYNC")) return "1";
  const std::map<std::string_view, std::string> values = {
      {"@@version", kVersion},
      {"@@server_id", std::to_string(host + 1)},
      {"@@read_only", master ? "0" : "1"},
      {"@@max_allowed_packet", "67108864"},
      {"@@gtid_domain_id", std::to_string(host / 2 + 1)},
      {"@@gtid_current_pos", gtid},
      {"@@gtid_binlog_pos", gtid},
      {"@@gtid_binlog_state", gtid},
      {"@@rpl_semi_sync_master_enabled", master ? "1" : "0"},
      {"@@rpl_semi_sync_master_timeout", "4000000"},
      {"@@rpl_semi_sync_slave_enabled", master ? "0" : "1"}};
  const auto found = values.find(expression);
  // The others are switches that are on.
  return found == values.end() ? "1" : found->second;
}

FakeHosts::Result FakeHosts::Variables(size_t host, std::string_view list) const {
  Result result;
  result.rows.emplace_back();
  for (const std::string_view expression : Split(list)) {
    result.columns.emplace_back(expression.substr(0, 60));
    result.rows.back().push_back(Value(host, expression));
  }
  return result;
}

std::string FakeHosts::Answer(const Connection& connection, const std::string& statement) {
  const size_t host = connection.host;
  const bool master = host % 2 == 0;
  Result result;
  std::string answer;
  if (Has(statement, "SHOW ALL SLAVES STATUS") || Has(statement, "SHOW SLAVE STATUS")) {
    const Host& other = hosts_[host ^ 1];
    result.columns = {"Connection_name",       "Master_Host",       "Master_Port",
                      "Slave_IO_Running",      "Slave_SQL_Running", "Slave_SQL_Running_State",
                      "Seconds_Behind_Master", "Gtid_IO_Pos",       "Last_SQL_Error",
                      "Last_IO_Error"};
    if (!master) {
      result.rows = {{"", other.name, std::to_string(other.port), "Yes", "Yes",
                      "Slave has read all relay log; waiting for more updates", "0",
                      fmt::format("{0}-{0}-1000", host / 2 + 1), "", ""}};
    }
  } else if (Has(statement, "SHOW GLOBAL STATUS")) {
    result.columns = {"Variable_name", "Value"};
    result.rows = {{"Rpl_semi_sync_master_clients", master ? "1" : "0"},
                   {"Rpl_semi_sync_master_no_tx", "0"},
                   {"Rpl_semi_sync_master_status", master ? "ON" : "OFF"},
                   {"Rpl_semi_sync_slave_status", master ? "OFF" : "ON"},
                   {"Threads_connected", "1"},
                   {"Uptime", "1000"}};
  } else if (Has(statement, "SHOW SESSION VARIABLES")) {
    // The connector asks for it at its first connection.
    result = {{"Variable_name", "Value"}, {{"lower_case_table_names", "0"}}};
  } else if (Has(statement, "Slave_IO")) {
    result = {{"id"}, {{master ? "0" : "5"}}};
  } else if (Has(statement, "COUNT(*) OVER")) {
    result.columns = {"count", "id", "table", "time", "state"};
  } else if (Has(statement, "innodb_sys_tablespaces")) {
    result = {{"bytes"}, {{"1073741824"}}};
  } else if (Has(statement, "MASTER_GTID_WAIT")) {
    result = {{"waited"}, {{"0"}}};
  } else if (statement.starts_with("SELECT @@") || statement.starts_with("SELECT CAST(UNIX_TIMESTAMP")) {
    result = Variables(host, std::string_view(statement).substr(7));
  } else if (statement.starts_with("SELECT") || statement.starts_with("SHOW")) {
    if (unknown_.load() == nullptr) unknown_ = new std::string(statement);
    PutPacket(answer, 1, Error("not known: " + statement.substr(0, 200)));
    return answer;
  } else {
    PutPacket(answer, 1, Ok());
    return answer;
  }
  uint8_t sequence = 0;
  std::string count;
  Put(count, result.columns.size(), 1);
  PutPacket(answer, ++sequence, count);
  for (const std::string& column : result.columns) PutPacket(answer, ++sequence, Column(column));
  PutPacket(answer, ++sequence, End());
  for (const std::vector<std::string>& row : result.rows) {
    std::string body;
    for (const std::string& value : row) PutText(body, value);
    PutPacket(answer, ++sequence, body);
  }
  PutPacket(answer, ++sequence, End());
  return answer;
}

}  // namespace kvstore::testing::fleet_size
