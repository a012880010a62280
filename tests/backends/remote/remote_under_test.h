#pragma once

#include "tests/backend_suite/suite.h"

namespace kvstore::testing {

/// The backend of `inner` behind a server, and a remote backend that is its client: each call of the suite
/// goes through client, network, server and router.
///
/// hops  how many servers, each with a remote backend that is a client of the next.
UnderTest Remote(const UnderTest& inner, int hops = 1);

/// A backend whose endpoints of migrations are behind a server, and nothing else.
UnderTest RemoteEndpoints(const UnderTest& inner);

}  // namespace kvstore::testing
