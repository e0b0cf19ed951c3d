#include "communicators.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::python {

namespace {

class LoneCommunicator final : public Communicator {
 public:
  explicit LoneCommunicator(const Device& device) : Communicator(0, 1, device) {}

  [[nodiscard]] std::unique_ptr<Communicator> duplicate() override {
    return std::make_unique<LoneCommunicator>(device());
  }
  void leave(const std::string&) noexcept override {}

 private:
  // Calls in place of one rank do not come here; nothing else is called on one that is alone.
  void perform(const Collective& call, const std::byte*, std::byte*, StreamHandle) override {
    throw std::logic_error(call.to_string() + " in a world of one process");
  }
};

}  // namespace

WatchedCommunicator::WatchedCommunicator(std::unique_ptr<Communicator> carrier)
    : WatchedCommunicator(std::move(carrier), std::make_shared<Family>()) {}

WatchedCommunicator::WatchedCommunicator(std::unique_ptr<Communicator> carrier,
                                         std::shared_ptr<Family> family)
    : Communicator(carrier->rank(), carrier->size(), carrier->device()),
      carrier_(std::move(carrier)),
      family_(std::move(family)) {
  const std::lock_guard lock(family_->mutex);
  family_->carriers.push_back(carrier_.get());
}

WatchedCommunicator::~WatchedCommunicator() {
  const std::lock_guard lock(family_->mutex);
  std::erase(family_->carriers, carrier_.get());
}

std::unique_ptr<Communicator> WatchedCommunicator::duplicate() {
  return std::unique_ptr<Communicator>(new WatchedCommunicator(carrier_->duplicate(), family_));
}

void WatchedCommunicator::leave_all(const std::string& why) const noexcept {
  const std::lock_guard lock(family_->mutex);
  for (Communicator* carrier : family_->carriers) carrier->leave(why);
}

std::unique_ptr<Communicator> lone_communicator(const Device& device) {
  return std::make_unique<LoneCommunicator>(device);
}

}  // namespace penstock::python
