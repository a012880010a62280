#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "blobstore/blob_store.h"
#include "blobstore/sha256.h"
#include "fleet_backup/binlog_segment.h"
#include "tests/fleet_backup/made_binlog.h"
#include "tests/support/status_matchers.h"

namespace kvstore::testing {

/// Puts a chain of segments with one transaction each, 1-7-N, which was committed at the second N since 1970.
/// The first one has the nodes "nodes of CHAIN".
///
/// after  the sequence after which the chain begins.
inline void PutMadeChain(BlobStore& blobs, const std::string& chain, uint64_t after, int count) {
  std::string previous;
  for (int i = 1; i <= count; ++i) {
    const uint64_t sequence = after + static_cast<uint64_t>(i);
    const fleet_backup::BinlogSegment segment{
        .chain = chain,
        .number = static_cast<uint64_t>(i),
        .previous = previous,
        .after = fmt::format("1-7-{}", sequence - 1),
        .last = fmt::format("1-7-{}", sequence),
        .first_ms = sequence * 1000,
        .last_ms = sequence * 1000,
        .transactions = 1,
        .nodes = i == 1 ? "nodes of " + chain : "",
        .nodes_in = 1,
        .log = MadeFormat() + MadeTransaction(1, 7, sequence, static_cast<uint32_t>(sequence),
                                              fmt::format("change {}", sequence))};
    const std::string bytes = fleet_backup::EncodeBinlogSegment(segment);
    ASSERT_OK(blobs.Put(fmt::format("log/{}/{:08}", chain, i), bytes, PutMode::kIfAbsent));
    previous = Hex(Sha256Of(bytes));
  }
}

}  // namespace kvstore::testing
