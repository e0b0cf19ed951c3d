#include <algorithm>
#include <array>

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include "src/core/start_thread.hpp"
#include "src/sequence/row_table.hpp"

namespace penstock::sequence {

namespace {

class WrappedRows final : public RowTable {
 public:
  WrappedRows(std::shared_ptr<const DocumentOrder> order, const PackOptions& options,
              bool count_documents)
      : order_(std::move(order)),
        capacity_(static_cast<std::uint64_t>(options.length)),
        running_(order_->size(),
                 [order = order_](std::uint64_t first, std::span<std::uint64_t> lengths) {
                   order->lengths(first, lengths);
                 }) {
    summary_.tokens = running_.total();
    summary_.documents = order_->size();
    hash_ = running_.hash();
    summary_.rows = (summary_.tokens + capacity_ - 1) / capacity_;
    if (count_documents) summary_.max_documents_per_row = max_documents_per_row();
  }

  void pieces(std::uint64_t row, std::vector<Piece>& pieces) const override {
    pieces.clear();
    const std::uint64_t begin = row * capacity_;
    walk(begin, std::min(begin + capacity_, running_.total()),
         [&](const Piece& piece) { pieces.push_back(piece); });
  }

 private:
  static constexpr std::size_t kAtOnce = 16;  // documents that are looked up together

  // The parts of documents that make up tokens [begin, end) of all, of documents that have any. Less where lengths are
  // not what they were.
  template <class Take>
  void walk(std::uint64_t begin, std::uint64_t end, Take&& take) const {
    auto [place, offset] = running_.find(begin);
    std::array<std::uint64_t, kAtOnce> numbers{};
    while (begin < end && place < order_->size()) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(kAtOnce, order_->size() - place));
      order_->numbers(place, std::span(numbers).first(count));
      for (std::size_t k = 0; k < count && begin < end; ++k, offset = 0) {
        const std::uint64_t length = order_->length_of(numbers[k]);
        const std::uint64_t taken = std::min(length - std::min(length, offset), end - begin);
        if (taken > 0) take(Piece{numbers[k], offset, taken});
        begin += taken;
      }
      place += count;
    }
  }

  [[nodiscard]] std::uint64_t max_documents_per_row() const {
    constexpr std::uint64_t kFewest = 64, kRanges = 4096;
    const auto most_in = [&](const auto& rows, std::uint64_t most) {
      std::uint64_t row = rows.begin(), filled = 0, documents = 0;
      walk(row * capacity_, std::min(rows.end() * capacity_, running_.total()),
           [&](const Piece& piece) {
             std::uint64_t left = piece.length;
             while (left > 0) {
               const std::uint64_t taken = std::min(left, capacity_ - filled);
               most = std::max(most, ++documents);
               left -= taken;
               filled += taken;
               if (filled < capacity_) break;
               filled = documents = 0;
               if (left >= capacity_) most = std::max<std::uint64_t>(most, 1);
               left %= capacity_;  // rows that it fills alone
             }
           });
      return most;
    };
    std::uint64_t most = 0;
    core::run_on_tbb_threads("counting documents", [&] {
      most = tbb::parallel_reduce(tbb::blocked_range<std::uint64_t>(
                                      0, summary_.rows, std::max(kFewest, summary_.rows / kRanges)),
                                  std::uint64_t{0}, most_in,
                                  [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
    });
    return most;
  }

  std::shared_ptr<const DocumentOrder> order_;
  std::uint64_t capacity_;
  RunningLengths running_;
};

}  // namespace

std::unique_ptr<const RowTable> wrap_rows(std::shared_ptr<const DocumentOrder> order,
                                          const PackOptions& options, bool count_documents) {
  return std::make_unique<WrappedRows>(std::move(order), options, count_documents);
}

}  // namespace penstock::sequence
