#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/mysql/changes/log_position.h"

/// Vouches for the names of hosts in a token. A follower may have a token which names servers that have no
/// shards any more, and what they have is read by the store's account: so nobody else may be able to make
/// one.
namespace kvstore::mysql {

/// Returns what vouches for the hosts of `pairs`: the first 16 bytes of their HMAC-SHA-256.
///
/// secret  of all programs that use these servers: the password of their account.
std::string SealHosts(const std::vector<ChangePosition::Pair>& pairs, std::string_view secret);

/// Whether the position's seal was made by SealHosts with this secret.
bool HostsAreSealed(const ChangePosition& position, std::string_view secret);

}  // namespace kvstore::mysql
