#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reports/bits.h"
#include "reports/exact_sum.h"
#include "reports/number.h"
#include "reports/steps.h"

/// The times and the values of one series, packed. Stored: never change without a new chunk version.
namespace kvstore::reports {

/// Writes times that ascend strictly, in whatever unit, as differences of differences: times at even
/// distances take one bit each. At least one time, each below 2^53.
void PackTimes(BitWriter& out, std::span<const uint64_t> times);
/// Reads `count` (at least 1) of them into `times`. Bytes that do not decode make `in` fail; then `times` is
/// whatever it is.
void UnpackTimes(BitReader& in, size_t count, std::vector<uint64_t>& times);

/// Writes numbers, integers and real ones, each bit for bit, in the smallest of these forms:
///
///   0  integers: the least one, and what each has above it (frame of reference)
///   1  real numbers: XOR with the one before ("Gorilla", Pelkonen and others, VLDB 2015)
///   2  real numbers that are whole: as integers
///   3  integers: XOR with the one before
///   4  both kinds: a bit for each, then the integers as 0, then the real numbers as 1
///
/// At least one number.
void PackNumbers(BitWriter& out, std::span<const Number> numbers);
/// Reads `count` (at least 1) of them into `numbers`. Bytes that do not decode make `in` fail.
void UnpackNumbers(BitReader& in, size_t count, std::vector<Number>& numbers);
/// Reads them if they are integers that were packed as a frame (form 0), as most are. False if they were
/// packed in another form; then the caller has `in` return to where it was.
bool UnpackIntegers(BitReader& in, size_t count, std::vector<int64_t>& integers);
/// The same, but gives only their sums, one for each run; the runs ascend and do not overlap. Also false if a
/// number takes so many bits that the sums of what they have above the least one could pass 64 bits.
bool SumIntegers(BitReader& in, size_t count, std::span<const StepRun> runs, std::vector<Int128>& sums);
/// Passes over `count` of them without decoding each.
void SkipNumbers(BitReader& in, size_t count);

}  // namespace kvstore::reports
