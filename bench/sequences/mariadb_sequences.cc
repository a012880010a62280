#include <fmt/format.h>

#include <utility>
#include <vector>

#include "bench/fleet/mysql_fixture.h"
#include "bench/harness/report.h"
#include "bench/sequences/sequence_store.h"

namespace kvstore::bench {
namespace {

constexpr char kTable[] = "db_kv_bench.sequences";

/// A connection with its statements.
class Client {
 public:
  Client(const Host& host, const MySqlFleetOptions& fleet)
      : connection_(std::make_unique<RawConnection>(host, fleet)),
        append_(connection_->Prepare(fmt::format("INSERT INTO {} VALUES (?, ?, ?, ?)", kTable))),
        newest_(connection_->Prepare(fmt::format(
            "SELECT value FROM {} WHERE user = ? AND kind = ? ORDER BY at DESC LIMIT ?", kTable))) {}

  RawConnection& connection() { return *connection_; }

  void Append(const Event& event) {
    append_.setString(1, Text(event.user));
    append_.setString(2, Text(event.kind));
    append_.setUInt64(3, event.timestamp);
    append_.setString(4, Text(event.value));
    append_.executeUpdate();
  }

  size_t ReadNewest(std::string_view user, std::string_view kind, uint32_t count) {
    newest_.setString(1, Text(user));
    newest_.setString(2, Text(kind));
    newest_.setUInt64(3, count);
    const std::unique_ptr<sql::ResultSet> rows(newest_.executeQuery());
    std::vector<std::string> values;
    while (rows->next()) values.push_back(rows->getString(1));
    return values.size();
  }

 private:
  static sql::SQLString Text(std::string_view text) { return sql::SQLString(std::string(text)); }

  std::unique_ptr<RawConnection> connection_;
  sql::PreparedStatement& append_;  // of connection_, as is the other
  sql::PreparedStatement& newest_;
};

class MariaDbSequences : public SequenceStore {
 public:
  explicit MariaDbSequences(std::vector<Client> clients) : clients_(std::move(clients)) {}
  ~MariaDbSequences() override { clients_[0].connection().Run("DROP DATABASE db_kv_bench"); }

  void Append(int thread, const Event& event) override { ClientOf(thread).Append(event); }

  void Load(std::span<const Event> events) override {
    RawConnection& connection = clients_[0].connection();
    connection.Run("START TRANSACTION");
    for (const Event& event : events) clients_[0].Append(event);
    connection.Run("COMMIT");
  }

  size_t ReadNewest(int thread, std::string_view user, std::string_view kind, uint32_t count) override {
    return ClientOf(thread).ReadNewest(user, kind, count);
  }

  std::string promise() const override {
    return "what the server is configured for; all versions are kept, on disk, without limit or expiry";
  }

 private:
  Client& ClientOf(int thread) { return clients_[static_cast<size_t>(thread)]; }

  std::vector<Client> clients_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SequenceStore>> MakeMariaDbSequences(const MySqlFleetOptions& fleet,
                                                                    int threads) {
  const auto fixture = MySqlFixture::Open({.fleet = fleet});
  if (!fixture.ok()) return fixture.status();
  const Host host = (*fixture)->FirstHost(ShardSpace::kMod);
  try {
    RawConnection(host, fleet).Run("CREATE DATABASE IF NOT EXISTS db_kv_bench");
    RawConnection(host, fleet)
        .Run(fmt::format(
            "CREATE OR REPLACE TABLE {} (user VARBINARY(255) NOT NULL, kind VARBINARY(64) NOT NULL, "
            "at BIGINT UNSIGNED NOT NULL, value BLOB NOT NULL, PRIMARY KEY (user, kind, at))",
            kTable));
    std::vector<Client> clients;
    for (int i = 0; i < threads; ++i) clients.emplace_back(host, fleet);
    return std::make_unique<MariaDbSequences>(std::move(clients));
  } catch (const sql::SQLException& error) {
    return absl::UnavailableError(fmt::format("{}: {}", host.ToString(), error.what()));
  }
}

}  // namespace kvstore::bench
