#include "src/augment/passes.hpp"

#include <algorithm>
#include <optional>

namespace penstock::augment {

namespace {

PassCounts counted_by(StepKind kind) {
  if (kind == StepKind::contrast) return PassCounts::luma;
  if (kind == StepKind::autocontrast || kind == StepKind::equalize) return PassCounts::levels;
  return PassCounts::nothing;
}

PassKind kind_of(StepKind kind) {
  switch (kind) {
    case StepKind::sharpness:
      return PassKind::sharpened;
    case StepKind::gaussian_blur:
      return PassKind::blurred;
    case StepKind::affine:
    case StepKind::perspective:
    case StepKind::flip:
    case StepKind::vertical_flip:
      return PassKind::moved;
    default:
      return PassKind::points;
  }
}

/// The passes of one program.
class Planner {
 public:
  explicit Planner(std::uint32_t image) : image_(image) {}

  std::vector<Pass> plan(ProgramView program) {
    for (std::size_t k = 0; k < program.size(); ++k) add(program[k], static_cast<std::uint8_t>(k));
    close();
    if (current_ == 0) {
      open(PassKind::points, 0);
      close();
    }
    // Which buffer is which is all the same: the last one is to be kResult.
    const auto renamed = [this](std::uint8_t buffer) {
      return buffer == current_ ? kResult : buffer == kResult ? current_ : buffer;
    };
    for (Pass& pass : passes_) {
      pass.from = renamed(pass.from);
      pass.to = renamed(pass.to);
      pass.original = renamed(pass.original);
    }
    return std::move(passes_);
  }

 private:
  void add(const Step& step, std::uint8_t at) {
    if (step.kind == StepKind::mix_begin) {
      close();
      original_ = current_;
      own_weight_ = static_cast<std::uint32_t>(step.values[0]);
      begins_ = true;
      return;
    }
    if (step.kind == StepKind::mix_add) return end_branch(step, at);
    if (const PassCounts counts = counted_by(step.kind); counts != PassCounts::nothing) {
      count(counts, at);
      open(PassKind::points, at);
    } else if (const PassKind kind = kind_of(step.kind); kind != PassKind::points) {
      close();
      open(kind, at);
      ++open_->steps;
      return;
    }
    if (open_ && is_table(step.kind) && !in_run_ && runs_ == kMostRuns) close();
    if (!open_) open(PassKind::points, at);
    ++open_->steps;
    if (is_table(step.kind) && !in_run_) ++runs_;
    in_run_ = is_table(step.kind);
  }

  void open(PassKind kind, std::uint8_t at) {
    open_ = {.image = image_, .first = at, .kind = kind, .from = current_};
    runs_ = 0;
    in_run_ = false;
  }

  void close() {
    if (!open_) return;
    current_ = open_->to = free_buffer();
    emit();
  }

  /// What the image has now is counted: by the pass that makes it, or by one of its own.
  void count(PassCounts counts, std::uint8_t at) {
    const bool stores = open_.has_value();
    if (!stores) open(PassKind::points, at);
    open_->counts = counts;
    if (stores) return close();
    open_->end = PassEnd::nothing;
    emit();
  }

  void end_branch(const Step& step, std::uint8_t at) {
    if (!open_) open(PassKind::points, at);
    open_->weight = static_cast<std::uint32_t>(step.values[0]);
    open_->begins = begins_ ? 1 : 0;
    begins_ = false;
    const bool is_last = step.values[1] != 0;
    open_->end = is_last ? PassEnd::mix : PassEnd::add;
    open_->original = original_;
    if (is_last) {
      open_->own_weight = own_weight_;
      open_->to = free_buffer();
    }
    current_ = is_last ? open_->to : original_;
    emit();
    if (is_last) original_ = 0;
  }

  void emit() {
    passes_.push_back(*open_);
    open_.reset();
  }

  /// Neither what is read nor what a mixture began with.
  [[nodiscard]] std::uint8_t free_buffer() const {
    std::uint8_t buffer = kResult;
    while (buffer == current_ || buffer == original_) ++buffer;
    return buffer;
  }

  std::uint32_t image_;
  std::vector<Pass> passes_;
  std::optional<Pass> open_;
  int runs_ = 0;  // of the pass that is open
  bool in_run_ = false;
  std::uint8_t current_ = 0;   // where the image is, without the pass that is open
  std::uint8_t original_ = 0;  // of the mixture, where there is one
  std::uint32_t own_weight_ = 0;
  bool begins_ = false;
};

}  // namespace

void PassTable::add(ProgramView program, std::uint32_t image) {
  std::uint16_t level = 0;
  for (const Pass& pass : Planner(image).plan(program)) passes_.push_back({pass, level++});
}

std::vector<PassGroup> PassTable::write(std::span<Pass> to) const {
  const auto place_of = [](const Leveled& of) {
    return static_cast<std::size_t>(of.level) * kPassKinds + static_cast<std::size_t>(of.pass.kind);
  };
  std::vector<PassGroup> groups;
  for (const Leveled& of : passes_) {
    const std::size_t place = place_of(of);
    if (groups.size() <= place) groups.resize(place + 1);
    ++groups[place].count;
    groups[place].counts |= of.pass.counts != PassCounts::nothing;
  }
  std::uint32_t begin = 0;
  for (std::size_t place = 0; place < groups.size(); ++place) {
    groups[place].begin = begin;
    groups[place].level = static_cast<std::uint16_t>(place / kPassKinds);
    groups[place].kind = static_cast<PassKind>(place % kPassKinds);
    begin += groups[place].count;
  }
  std::vector<std::uint32_t> next;
  for (const PassGroup& group : groups) next.push_back(group.begin);
  for (const Leveled& of : passes_) to[next[place_of(of)]++] = of.pass;
  std::erase_if(groups, [](const PassGroup& group) { return group.count == 0; });
  return groups;
}

}  // namespace penstock::augment
