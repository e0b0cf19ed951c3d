#include <algorithm>
#include <array>
#include <atomic>

#include <tbb/enumerable_thread_specific.h>

#include "src/core/parallel_for.hpp"
#include "src/sequence/fit.hpp"
#include "src/sequence/row_table.hpp"

namespace penstock::sequence {

namespace {

// What a document gives to its window.
struct Share {
  std::uint64_t full = 0;     // rows that it fills alone
  std::uint32_t rest = 0;     // tokens that go into a row with others
  std::uint64_t dropped = 0;  // tokens
};

Share share_of(std::uint64_t length, std::uint64_t capacity, LongDocuments long_documents) {
  if (length <= capacity || long_documents == LongDocuments::split)
    return {length / capacity, static_cast<std::uint32_t>(length % capacity), 0};
  if (long_documents == LongDocuments::truncate) return {1, 0, length - capacity};
  return {0, 0, length};
}

// The rows of kPackWindow documents: those that a document fills alone come first, then those that several share.
class Window {
 public:
  struct Scratch {
    BestFit best_fit;
    FirstFit first_fit;
    std::vector<std::uint64_t> lengths;
    std::vector<std::uint32_t> rests;
    std::vector<std::uint32_t> rows;
  };

  Window() = default;
  Window(std::uint64_t documents, std::uint64_t capacity, const PackOptions& options,
         Scratch& scratch, PackSummary& summary) {
    scratch.rests.assign(documents, 0);
    scratch.rows.resize(documents);
    for (std::uint64_t k = 0; k < documents; ++k) {
      const std::uint64_t length = scratch.lengths[k];
      const Share share = share_of(length, capacity, options.long_documents);
      summary.tokens += length - share.dropped;
      summary.dropped += share.dropped;
      scratch.rests[k] = share.rest;
      if (share.full == 0) continue;
      filled_.push_back({full_rows_, static_cast<std::uint16_t>(k)});
      full_rows_ += share.full;
    }
    const auto bins =
        options.method == PackMethod::best_fit
            ? scratch.best_fit(scratch.rests, static_cast<std::uint32_t>(capacity), scratch.rows)
            : scratch.first_fit(scratch.rests, static_cast<std::uint32_t>(capacity), scratch.rows);
    group(bins, scratch);
    filled_.shrink_to_fit();
    if (full_rows_ > 0)
      summary.max_documents_per_row = std::max<std::uint64_t>(summary.max_documents_per_row, 1);
    for (std::size_t row = 0; row < begins_.size(); ++row)
      summary.max_documents_per_row =
          std::max<std::uint64_t>(summary.max_documents_per_row, shared(row).size());
  }

  [[nodiscard]] std::uint64_t rows() const noexcept { return full_rows_ + begins_.size(); }
  [[nodiscard]] std::uint64_t full_rows() const noexcept { return full_rows_; }

  // The document that fills row `row` < full_rows(), and how many rows it has filled before.
  [[nodiscard]] std::pair<std::uint16_t, std::uint64_t> filled(std::uint64_t row) const {
    const auto next = std::ranges::upper_bound(filled_, row, {}, &Filled::first_row);
    return {std::prev(next)->document, row - std::prev(next)->first_row};
  }
  // The documents that share a row, counted from full_rows() on, in their order.
  [[nodiscard]] std::span<const std::uint16_t> shared(std::uint64_t row) const noexcept {
    const std::size_t begin = begins_[row];
    const std::size_t end = row + 1 < begins_.size() ? begins_[row + 1] : documents_.size();
    return std::span(documents_).subspan(begin, end - begin);
  }

 private:
  struct Filled {
    std::uint64_t first_row;
    std::uint16_t document;
  };

  // By counting, so that a row's documents stay in their order.
  void group(std::uint32_t bins, const Scratch& scratch) {
    std::vector<std::uint32_t> at(std::size_t{bins} + 1);
    for (std::size_t k = 0; k < scratch.rests.size(); ++k)
      if (scratch.rests[k] > 0) ++at[scratch.rows[k] + 1];
    for (std::size_t bin = 0; bin < bins; ++bin) at[bin + 1] += at[bin];
    begins_.assign(at.begin(), at.end() - 1);
    documents_.resize(at.back());
    for (std::size_t k = 0; k < scratch.rests.size(); ++k)
      if (scratch.rests[k] > 0) documents_[at[scratch.rows[k]]++] = static_cast<std::uint16_t>(k);
  }

  std::uint64_t full_rows_ = 0;
  std::vector<Filled> filled_;
  std::vector<std::uint16_t> begins_;  // of each shared row among documents_
  std::vector<std::uint16_t> documents_;
};

class FittedRows final : public RowTable {
 public:
  FittedRows(std::shared_ptr<const DocumentOrder> order, const PackOptions& options)
      : order_(std::move(order)),
        capacity_(static_cast<std::uint64_t>(options.length)),
        windows_((order_->size() + kPackWindow - 1) / kPackWindow) {
    std::vector<PackSummary> found(windows_.size());
    std::atomic<std::uint64_t> hash = 0;
    tbb::enumerable_thread_specific<Window::Scratch> scratches;
    core::parallel_for("packing documents", windows_.size(), [&](std::size_t w) {
      Window::Scratch& scratch = scratches.local();
      const std::uint64_t first = w * kPackWindow;
      const std::uint64_t documents = std::min(kPackWindow, order_->size() - first);
      scratch.lengths.resize(documents);
      order_->lengths(first, scratch.lengths);
      hash += hash_lengths(first, scratch.lengths);
      windows_[w] = Window(documents, capacity_, options, scratch, found[w]);
    });
    hash_ = hash;
    summary_.documents = order_->size();
    firsts_.reserve(windows_.size());
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      firsts_.push_back(summary_.rows);
      summary_.rows += windows_[w].rows();
      summary_.tokens += found[w].tokens;
      summary_.dropped += found[w].dropped;
      summary_.max_documents_per_row =
          std::max(summary_.max_documents_per_row, found[w].max_documents_per_row);
    }
  }

  void pieces(std::uint64_t row, std::vector<Piece>& pieces) const override {
    pieces.clear();
    // Windows without rows begin where the next one does.
    const auto w =
        static_cast<std::size_t>(std::ranges::upper_bound(firsts_, row) - firsts_.begin()) - 1;
    const Window& window = windows_[w];
    const std::uint64_t in_window = row - firsts_[w];
    if (in_window < window.full_rows()) {
      const auto [document, before] = window.filled(in_window);
      pieces.push_back({number(w, document), before * capacity_, capacity_});
      return;
    }
    for (const std::uint16_t document : window.shared(in_window - window.full_rows())) {
      const std::uint64_t number = this->number(w, document);
      const std::uint64_t length = order_->length_of(number);
      pieces.push_back({number, length / capacity_ * capacity_, length % capacity_});
    }
  }

 private:
  [[nodiscard]] std::uint64_t number(std::size_t window, std::uint16_t document) const {
    std::array<std::uint64_t, 1> number{};
    order_->numbers(window * kPackWindow + document, number);
    return number[0];
  }

  std::shared_ptr<const DocumentOrder> order_;
  std::uint64_t capacity_;
  std::vector<Window> windows_;
  std::vector<std::uint64_t> firsts_;  // the first row of each window
};

}  // namespace

std::unique_ptr<const RowTable> fit_rows(std::shared_ptr<const DocumentOrder> order,
                                         const PackOptions& options) {
  return std::make_unique<FittedRows>(std::move(order), options);
}

}  // namespace penstock::sequence
