#pragma once

#include <string>
#include <string_view>

#include "kvstore_api/mysql_options.h"
#include "shardmap/shard_map.h"

namespace kvstore::shardops {

/// Returns the text of an option file for one of MariaDB's programs: where and as whom it logs in. It belongs
/// into an UnnamedFile (pipe.h), and not on a command line, where every user of the machine could read the
/// password.
///
/// group  of options that the program reads: "client".
/// more   Further lines.
std::string OptionFile(std::string_view group, const Host& host, const mysql::MySqlOptions& login,
                       std::string_view more);

/// Returns a value as option files have it, in quotes.
std::string OptionValue(std::string_view text);

}  // namespace kvstore::shardops
