// order/operations: the orders there are. Each takes the order before it and returns a new one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/random.hpp>

#include "src/order/order.hpp"

namespace penstock::order {

/// 0, 1, … size-1 of one source; the innermost order. Its iteration is the epoch.
///
///   range(3)  ==  0 1 2
[[nodiscard]] OrderPtr range(std::uint64_t size, std::uint32_t source = 0);

/// 0, 1, 2, … of a stream, in the order of arrival: an endless innermost order that ends where
/// `arrived(wanted)` returns fewer than wanted. `arrived` waits until that many samples have
/// arrived since the very start, or no more will, and says how many have. What it throws comes out
/// of the cursor's read(), which can then be called again.
///
/// Every sample comes once, so cursors read forwards only. What a take, skip or shard leaves out is
/// gone; repeat and the whole shuffle refuse it, shuffle_window takes it.
///
/// Errors  std::invalid_argument  there is no function
///         std::logic_error       a cursor was asked for what it has read before, or for a second
///                                iteration: streams cannot be resumed
[[nodiscard]] OrderPtr arrivals(std::function<std::uint64_t(std::uint64_t wanted)> arrived,
                                std::uint32_t source = 0);

/// The first `count` positions, as tf.data's take; all of them where there are fewer.
///
///   take(range(9), 2)  ==  0 1
[[nodiscard]] OrderPtr take(OrderPtr input, std::uint64_t count);

/// All but the first `count` positions, as tf.data's skip.
///
///   skip(range(4), 2)  ==  2 3
[[nodiscard]] OrderPtr skip(OrderPtr input, std::uint64_t count);

/// The positions p with p % shards == index; the first size % shards shards get one more. Costs
/// nothing: what the other shards keep is not computed, unless a shuffle_window below needs it.
///
///   shard(range(5), 2, 0)  ==  0 2 4
///
/// Errors  std::invalid_argument  shards <= 0, or index outside [0, shards)
[[nodiscard]] OrderPtr shard(OrderPtr input, std::int64_t shards, std::int64_t index);

/// The input `times` times over, or endlessly. An endless repeat of an empty input is empty. Each
/// time is a separate iteration for the operations below: they shuffle again, and the epoch goes
/// up.
///
///   repeat(range(2), 3)  ==  0 1 0 1 0 1, of epochs 0 0 1 1 2 2
///
/// Errors  std::invalid_argument  times < 0; 2^32 epochs or more; 2^64 positions or more; an input
///         that is a stream, is endless or has an endless repeat in it, such as
///         take(repeat(x), n), whose second time would have no epoch numbers
[[nodiscard]] OrderPtr repeat(OrderPtr input, std::optional<std::int64_t> times = {});

/// Every position `times` times in a row, as torch.repeat_interleave. A sample's draw is 1 + its position here, whatever
/// the input had.
///
///   repeat_each(range(2), 3)  ==  0 0 0 1 1 1
///
/// Errors  std::invalid_argument  times < 1; 2^64 positions or more; a stream
[[nodiscard]] OrderPtr repeat_each(OrderPtr input, std::int64_t times);

/// A uniform permutation of the whole input, computed position by position in O(1) memory.
/// With `reshuffle` each iteration has its own. Over a shuffle_window it is right but slow: every
/// number makes the window jump.
///
/// Source  Mitchell, Stokes, Frank, Holmes: Bandwidth-Optimal Random Shuffling for GPUs (2021)
/// Errors  std::invalid_argument  an endless input, or a stream; the message says what to do
[[nodiscard]] OrderPtr shuffle(OrderPtr input, RandomKey key, bool reshuffle = true);

/// tf.data's shuffle buffer: fill `buffer`, then put out a uniformly picked one and take the next
/// input in its place; at the end, pick from what is left. Input j never comes before position
/// j - buffer + 1. A buffer of 1 changes nothing; one as large as the input shuffles it whole.
///
/// The picks are functions of (key, iteration, position), so a cursor that is asked for a far
/// position walks back, about buffer·ln(buffer) picks, until every place's last refill is known,
/// and rebuilds the buffer. Over a stream it only goes forwards: the order is the same as if the
/// end had been known, and a position needs no more than the first position + buffer arrivals.
///
/// Units   a cursor holds min(buffer, size) SampleIds, 24 bytes each.
/// Errors  std::invalid_argument  buffer is 0
[[nodiscard]] OrderPtr shuffle_window(OrderPtr input, RandomKey key, std::uint64_t buffer,
                                      bool reshuffle = true);

/// Whole chunks of the input in a random order; in each of them positions stay in their order. Chunk k has the positions from
/// `begins`[k] to the next one's begin. With `reshuffle` each iteration has its own order.
///
///   shuffle_chunks(range(5), {0, 2, 3})  ==  2 0 1 3 4, or another order of 0 1, 2 and 3 4
///
/// Units   a cursor holds 16 bytes a chunk
/// Errors  std::invalid_argument  an endless input, or a stream; begins that do not ascend from 0, or that are not below the
///                                input's size
[[nodiscard]] OrderPtr shuffle_chunks(OrderPtr input,
                                      std::shared_ptr<const std::vector<std::uint64_t>> begins,
                                      RandomKey key, bool reshuffle = true);

/// The input's positions `positions`[0], `positions`[1], …; each may come any number of times. If
/// one comes more than once, every sample's draw is 1 + its position in the list, whatever the
/// input had; else draws stay as they are. Holds 8 bytes a position.
///
///   pick(range(9), {7, 0, 7})  ==  7 0 7
///
/// Errors  std::invalid_argument  a position that the input does not have
[[nodiscard]] OrderPtr pick(OrderPtr input, std::vector<std::uint64_t> positions);
/// The same, of a list that others share.
[[nodiscard]] OrderPtr pick(OrderPtr input,
                            std::shared_ptr<const std::vector<std::uint64_t>> positions);

/// One input behind the other. Iteration i runs through iteration i of each.
///
///   concatenate({range(2, 0), range(2, 1)})  ==  0 1 0 1, of sources 0 0 1 1
///
/// Errors  std::invalid_argument  an input before the last is endless, 2^64 positions or more
[[nodiscard]] OrderPtr concatenate(std::vector<OrderPtr> inputs);

/// `count` positions of the input, drawn with replacement: position p with a probability of
/// weights[p] over the sum of all. With `reshuffle` each iteration draws again. A sample's draw is
/// 1 + its position here, whatever the input had. Holds 16 bytes a weight, shared by all cursors. A
/// weight below 2^-32 of the largest is as good as 0.
///
/// Source  PyTorch's WeightedRandomSampler; the alias method of Walker (1977) in integers
/// Errors  std::invalid_argument  an endless input, another number of weights than positions, a
///         weight that is negative or not finite, or a count > 0 and weights that add up to 0
[[nodiscard]] OrderPtr sample(OrderPtr input, std::span<const double> weights, std::uint64_t count,
                              RandomKey key, bool reshuffle = true);

}  // namespace penstock::order
