#pragma once

#include <string>
#include <vector>

/// Tests are written in the words of MariaDB. Where they run on MySQL (OnMySql), what both engines can do is
/// said in MySQL's words.
namespace kvstore::testing {

/// Returns SQL about replication in MySQL's words: STOP REPLICA for STOP SLAVE, and so on.
std::string InMySqlWords(std::string sql);

/// Returns the arguments of mysqld that do what these of mariadbd do. Those that MySQL needs no setting for
/// are left out. A server with a binary log gets what docs/mysql.md has in its configuration besides.
std::vector<std::string> MySqlArguments(const std::vector<std::string>& mariadb);

}  // namespace kvstore::testing
